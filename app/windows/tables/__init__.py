"""The Tables window: what drafters have learned, kept where, and what can be done with it."""
