"""What the window's local server was asked and answered, where that is kept: a database of its own."""
