"""The scrolling conversation: its entries, their widgets, searching and selecting."""
