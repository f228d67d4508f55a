"""The chat window: columns, commands, menus, side windows and Tab order."""
