"""The document as the model read it: text, map and search."""
