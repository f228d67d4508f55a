"""A sweep of the Lab and the figures of its charts. Pure."""
