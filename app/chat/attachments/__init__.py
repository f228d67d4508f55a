"""Documents of the message being written: chips, previews, files on their way."""
