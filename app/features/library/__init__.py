"""The library of documents, and their embeddings."""
