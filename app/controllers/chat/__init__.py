"""Controllers of the open chat: its answers, its page, its settings, and the list it is in."""
