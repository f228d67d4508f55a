"""The window of the tool servers: adding, switching on, what they say, and what is allowed."""
