"""Measurements of a loaded model on this machine: exact block widths, trees, splits, and the cost T(w)."""
