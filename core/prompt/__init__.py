"""The prompt of a request: messages, chat template, regions and token ids. No MLX."""
