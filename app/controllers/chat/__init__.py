"""Controllers of the open chat and of the chat list."""
