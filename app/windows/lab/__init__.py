"""The Lab window: sweeps of drafters over prompts, and their results."""
