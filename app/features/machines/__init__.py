"""The window of several machines."""
