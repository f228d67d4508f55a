"""The settings of the app as a whole."""
