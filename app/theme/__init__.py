"""Colours, type and icons. Knows no widget and no setting."""
