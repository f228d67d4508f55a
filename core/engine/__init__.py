"""The engine: composes models, KV caches, prefill, drafting and decoding into answers."""
