"""Tools of MCP servers: records, the process that runs the servers, its client, and the rules for calls.

Only `core.tools.host`, the process of its own, imports the MCP SDK.
"""
