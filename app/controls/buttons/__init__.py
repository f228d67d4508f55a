"""Buttons and switches: what is pressed, checked or turned."""
