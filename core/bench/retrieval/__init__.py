"""Recall of the passage that a question is about, among those that a scorer would keep."""
