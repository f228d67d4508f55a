"""A small sentence encoder: text passages and questions as vectors whose cosine compares meaning."""
