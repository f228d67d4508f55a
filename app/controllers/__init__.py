"""Controllers: handle events and intents, and apply effects to widgets, session and store."""
