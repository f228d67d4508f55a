"""The app's icon in every size and container."""
