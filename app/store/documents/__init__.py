"""Kept documents in the database."""
