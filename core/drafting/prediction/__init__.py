"""Predicted answers: followed along the answer that comes, and copied from."""
