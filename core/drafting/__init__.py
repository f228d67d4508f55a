"""Who guesses: one drafter a file, one registry. Token ids in, a draft out. No mlx."""
