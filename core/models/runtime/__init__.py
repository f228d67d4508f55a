"""The process made ready for MLX: BLAS, threads, memory."""
