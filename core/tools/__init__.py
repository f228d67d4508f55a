"""Tools of MCP servers: records, the process that runs the servers, its client, and the rules for calls.

Only `core.tools.host`, which runs in a separate process, imports the MCP SDK.
"""
