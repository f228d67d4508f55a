"""The sidebar: the chats, what was just deleted, and how the worker is."""
