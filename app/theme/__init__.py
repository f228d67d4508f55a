"""Colours, type, icons and zoom."""
