"""Building and checking the macOS bundle. Run from the checkout's root; knows nothing of the app's insides.

`python -m bundle.build` on a Mac, `python -m bundle.check` anywhere; the Makefile sets the path.
"""
