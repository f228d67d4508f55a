"""Measuring the window: how soon it is there, how it scrolls and streams, what it costs the engine."""
