"""What the desktop wants of an app: staying awake while it works, files it is asked to open, an icon."""
