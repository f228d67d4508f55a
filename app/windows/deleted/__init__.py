"""The chats that were deleted and can still be brought back."""
