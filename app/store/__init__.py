"""Persistent data: chats (SQLite with full-text search) and preferences. No Qt, no worker."""
