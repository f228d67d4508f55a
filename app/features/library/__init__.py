"""The library feature."""
