"""The local server in the window's process, and its requests."""
