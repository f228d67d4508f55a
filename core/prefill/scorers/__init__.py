"""Scorers: how much each passage of a prompt matters to the question."""
