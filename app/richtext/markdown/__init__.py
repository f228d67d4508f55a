"""Markdown, LaTeX and code as pieces of text with their sources. No Qt."""
