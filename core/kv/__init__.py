"""KV caches with exact rollback, and the sequence of what they hold."""
