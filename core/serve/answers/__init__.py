"""One answer after the other: who waits, who is answered, what became of each request."""
