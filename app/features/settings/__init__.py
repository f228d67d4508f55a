"""The settings feature."""
