"""Evidence of what may come next, and how much it is worth. No mlx."""
