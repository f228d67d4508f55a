"""Race: one prompt answered plainly and with drafting, replayed side by side."""
