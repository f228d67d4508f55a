"""Windows of archived and of deleted chats."""
