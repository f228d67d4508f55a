"""The bench of sparse prefill."""
