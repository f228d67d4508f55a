"""Trained heads that draft for a model: one module for each kind."""
