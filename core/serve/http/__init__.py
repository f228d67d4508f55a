"""HTTP: the sockets, who is let in, bodies in, answers out."""
