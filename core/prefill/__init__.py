"""Reading the prompt: dense, in chunks that can be cancelled."""
