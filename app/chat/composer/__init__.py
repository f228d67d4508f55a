"""Where a message is written: text, paste, context, send and stop."""
