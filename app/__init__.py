"""The window: PySide6 and qasync. Sees the words of `core` and the worker's client, never the engine."""
