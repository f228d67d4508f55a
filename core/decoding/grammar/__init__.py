"""Grammars of answers: compiled for a model's tokenizer, walked along the tokens of an answer."""
