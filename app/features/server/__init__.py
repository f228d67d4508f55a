"""The server feature."""
