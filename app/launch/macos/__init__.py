"""Parts of macOS that Qt has no API for: activities that prevent sleep, and the name in the menu bar."""
