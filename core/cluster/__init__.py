"""One model over several machines: this one leads, the others follow."""
