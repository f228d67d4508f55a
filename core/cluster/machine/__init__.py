"""One machine of a cluster: what it is, where it is found, whom it reaches."""
