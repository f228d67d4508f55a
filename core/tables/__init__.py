"""N-gram tables on disk: written whole or not at all, refused if they are not what they say."""
