"""Commands about the installation itself: shell completion and uninstalling."""
