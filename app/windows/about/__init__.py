"""The About window: version, licences and updates."""
