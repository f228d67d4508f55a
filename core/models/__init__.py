"""Models: the starter, loading, tokenizer family, chat template."""
