"""Controllers: take in what is heard and wanted, and carry it out on widgets, session and store."""
