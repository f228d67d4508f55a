"""Thoughts, text and calls of answers."""
