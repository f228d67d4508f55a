"""Rehearsal: the model answers prompts while idle, and a table of its answers is built for drafting."""
