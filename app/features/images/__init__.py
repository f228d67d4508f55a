"""Images of chats: what the loaded model sees of them, and the window that shows one."""
