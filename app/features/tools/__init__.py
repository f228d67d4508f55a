"""The window of the tool servers: adds them, switches them on, shows their tools, logs and permissions."""
