"""The local server over the window's own worker: who is answered when, and whether it is on."""
