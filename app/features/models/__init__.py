"""The installed models: list, downloads, loading and draft models."""
