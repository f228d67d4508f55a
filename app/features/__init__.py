"""The features feature."""
