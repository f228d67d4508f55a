"""The Tables window: what the n-gram drafters have learned."""
