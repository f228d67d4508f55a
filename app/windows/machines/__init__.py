"""The window of several machines that run a model together."""
