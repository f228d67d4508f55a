"""The models feature."""
