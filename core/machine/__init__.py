"""Measurements of the loaded model on this machine: cost, exactness, trials, pace."""
