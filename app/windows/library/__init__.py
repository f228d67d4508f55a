"""Documents kept for any chat: list, search, preview."""
