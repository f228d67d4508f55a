"""The race: one prompt answered with and without drafting."""
