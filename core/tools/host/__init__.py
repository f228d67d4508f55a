"""The tools' process: all tool servers, each with one task. Only this package imports the MCP SDK.

The SDK takes a second to import and 60 MB, and its connections must be opened and closed by the same task.
"""
