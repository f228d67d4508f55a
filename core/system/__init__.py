"""The process and its machine: child processes, folders, clock, Ctrl-C."""
