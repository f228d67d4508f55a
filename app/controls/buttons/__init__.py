"""Buttons and switches."""
