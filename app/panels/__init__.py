"""The panels: chats on the left, settings and document on the right."""
