"""The race feature."""
