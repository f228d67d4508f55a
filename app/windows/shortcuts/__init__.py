"""The sheet of keyboard shortcuts."""
