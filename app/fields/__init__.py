"""Fields for settings, made from their declarations."""
