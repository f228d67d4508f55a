"""`draftlight bench serve`: Draftlight's local server beside mlx-lm's, asked the same by the same client."""
