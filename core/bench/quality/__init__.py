"""The bench of what sparse prefill costs in answers."""
