"""Chats as pure state: conversations, their reading maps, and which chat is open. No files."""
