"""Folders of models: what lies in them, where they are found, and downloads. No MLX."""
