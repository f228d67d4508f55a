"""Compares the document readers with independent extractors on real files."""
