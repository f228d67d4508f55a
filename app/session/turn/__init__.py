"""The turn that runs over the link to the worker, as one pure state machine."""
