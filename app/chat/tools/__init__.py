"""Tools in the open chat: the permission card of a call, its line in the answer, and the choice of tools."""
