"""Race: a prompt answered with and without drafting, replayed side by side."""
