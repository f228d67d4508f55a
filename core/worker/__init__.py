"""The worker process (main) and its client. The client is the only part that `app` may import."""
