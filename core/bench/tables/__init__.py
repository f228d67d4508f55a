"""The bench of n-gram tables."""
