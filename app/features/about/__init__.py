"""The about feature."""
