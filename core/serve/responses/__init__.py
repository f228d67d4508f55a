"""OpenAI's responses: items in, items out. Nothing is stored, so nothing can be gone on from."""
