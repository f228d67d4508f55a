"""The Lab's sweep."""
