"""A race and its replay. Pure."""
