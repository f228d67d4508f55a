"""The machines' window: which can run a model together, what fits over them, what is missing."""
