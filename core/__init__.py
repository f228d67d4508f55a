"""The engine: drafting, decoding, KV caches, models, worker, bench and CLI. Never imports Qt or `app`."""
