"""Benches of sparse prefill: its speed, what it costs, what its scorers find."""
