"""What happens in the window: the desk takes everything in, its rooms carry it out on the widgets."""
