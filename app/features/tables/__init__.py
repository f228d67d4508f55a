"""The n-gram tables."""
