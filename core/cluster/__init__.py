"""One model over the ranks that `mlx.launch` started: rank 0 decides, the other ranks follow."""
