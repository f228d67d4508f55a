"""The machines that run a model together: kept, looked at, and told to a worker."""
