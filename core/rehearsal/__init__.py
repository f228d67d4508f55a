"""Rehearsal: a model answers prompts by itself, and what it says is kept to guess from."""
