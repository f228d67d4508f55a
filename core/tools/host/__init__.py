"""The tools' process: all servers of tools, each with one task. Only here the MCP SDK is imported.

The SDK takes a second to import and 60 MB, and its connections must be opened and closed by the same task.
"""
