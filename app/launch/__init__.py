"""How the window's process starts: display, application, opening, smoke test, screenshots."""
