"""The About window and the check for newer versions."""
