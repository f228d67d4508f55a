"""The Lab: sweeps of drafters over prompts, and what they found."""
