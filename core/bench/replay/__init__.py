"""Drafters over recorded streams, without a model."""
