"""Chats of other programs, read from their export files in a bounded child process."""
