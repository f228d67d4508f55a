"""Tools in a chat: records of calls, permissions, and where the arguments of a call come from. Pure."""
