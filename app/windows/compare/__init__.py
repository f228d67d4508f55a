"""Two versions of an answer side by side."""
