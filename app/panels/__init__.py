"""Panels at the window's sides: the chats at the left, the settings at the right."""
