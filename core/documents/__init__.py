"""Text of documents: plain text, HTML, PDF and Word, each read in a separate process. No Qt, no mlx."""
