"""The chats that the sidebar does not list: archived ones, and deleted ones that can be brought back."""
