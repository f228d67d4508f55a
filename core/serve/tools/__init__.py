"""Calls of functions in what a model writes. No API's shape."""
