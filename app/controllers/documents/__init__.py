"""Documents beside the messages: the library that keeps them for any chat."""
