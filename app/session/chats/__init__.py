"""Chats as pure state: conversations, what of them was read, and which is open. No files."""
