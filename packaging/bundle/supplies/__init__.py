"""What a build downloads, checked against the lock: wheels, CPython, Briefcase's launcher."""
