"""Pieces of text laid out and painted: lines, tables, tints."""
