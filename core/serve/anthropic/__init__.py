"""Anthropic's shapes: messages, the count of their tokens, errors."""
