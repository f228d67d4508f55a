"""State of the worker, and the texts for its problems. Pure."""
