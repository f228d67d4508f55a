"""The Lab: sweeps over drafters, prompts and keep shares, and their charts."""
