"""N-gram tables on disk and prebuilt tables: written atomically, and validated completely when read."""
