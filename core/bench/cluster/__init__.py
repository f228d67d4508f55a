"""`draftlight bench cluster`."""
