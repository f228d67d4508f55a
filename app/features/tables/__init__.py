"""The tables feature."""
