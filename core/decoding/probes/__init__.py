"""What a loaded model is tried out for: exactness by width, trees, splits, and T(w)."""
