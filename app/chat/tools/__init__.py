"""Tools in the open chat: the question whether a call may run, its line, and the choice of tools."""
