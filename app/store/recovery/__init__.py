"""Chats that were damaged, lost or not saved: backups, counts, repair."""
