"""Scripts that make or choose what measurements need; none of them is a test."""
