"""Loading models: weights, memory, and the preparation of MLX."""
