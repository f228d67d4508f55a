"""Draft, verify, accept, roll back: the decode loop, sampling and detokenising."""
