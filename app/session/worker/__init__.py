"""What is known of the worker, its models and tables, and what went wrong. Pure."""
