"""Benchmarks and pictures of the window."""
