"""Text of documents: plain text, HTML, PDF and Word, each read in a process of its own. No Qt, no mlx."""
