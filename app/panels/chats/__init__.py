"""The sidebar: the chats, the undo bar, and the worker's status."""
