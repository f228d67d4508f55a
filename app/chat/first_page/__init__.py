"""What an empty chat shows: the model that is ready, examples, and how an answer is written."""
