"""The lab feature."""
