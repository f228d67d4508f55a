"""The windows beside the chat window, and the race's page."""
