"""Projects: the sheet with a project's settings, and the commands for projects."""
