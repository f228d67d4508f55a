"""The local server's window: requests as they come and go, and one of them as it is answered."""
