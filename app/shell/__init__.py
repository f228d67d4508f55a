"""The chat window as a whole: its columns, commands, menus and the way of Tab."""
