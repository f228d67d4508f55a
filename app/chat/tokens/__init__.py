"""Tokens made visible: tooltip, strip, facts and legend."""
