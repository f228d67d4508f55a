"""Drafters: token ids in, drafts out. One drafter per file and one registry. Does not import MLX."""
