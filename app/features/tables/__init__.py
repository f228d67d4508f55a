"""The n-gram tables and the rehearsal."""
