"""Measured comparisons and their reports."""
