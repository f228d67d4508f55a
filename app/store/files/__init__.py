"""Chats and results of measurements as files that people take along."""
