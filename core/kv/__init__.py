"""KV caches with exact rollback, and the sequence of tokens in them."""
