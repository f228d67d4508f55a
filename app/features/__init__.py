"""Features with their state, windows and controllers, one folder or file each."""
