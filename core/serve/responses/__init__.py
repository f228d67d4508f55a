"""OpenAI's responses: items in, items out. Recent items are kept in memory only."""
