"""KV caches with exact rollback, and the ledger of what they hold."""
