"""Chats as HTML and PDF."""
