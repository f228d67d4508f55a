"""Texts of the window of the tool servers."""

from __future__ import annotations

from app.session.strings import MACHINE

TITLE = "Tools"
SUBTITLE = "Servers whose tools the model may call"
SERVERS = "Servers"
ALLOWED = "Allowed"
PAGES = "Page"
ADD = "Add Server…"
IMPORT = "Import…"
RESTART = "Restart"
EDIT = "Edit"
REMOVE = "Remove"
CANCEL = "Cancel"
NO_SERVERS = "No servers yet"
NO_SERVERS_HINT = (
    "Add one by its command or address, or import those of Claude Desktop, LM Studio, Cursor or VS Code."
)
LIST = "Tool servers"
SWITCH = "Server is on"
ON = "On"
OFF_NOTE = "Off. It does not run. Read the command before you switch it on: it runs with your permissions."
ADDRESS_OFF_NOTE = "Off. Nothing is sent to it."
STARTING = "Starting…"
AGAIN = "It ended and is being restarted."
READY = "Running"
FAILED = "Failed"
RESTARTED = "It ended once and was restarted."

TABS = "Part of the server"
TAB_TOOLS = "Tools"
TAB_COMMAND = "Command"
TAB_LOG = "Log"
COMMAND = "Command"
ADDRESS = "Address"
ENVIRONMENT = "Environment"
HEADERS = "Headers"
ENVIRONMENT_NOTE = "It also gets your home folder, user name, language and search path, and nothing else."
NO_ENVIRONMENT = "none"
NO_LOG = "The log is empty."
TOOL = "Tool"
READS = "Claims read-only"
TOKENS = "Tokens"
YES = "yes"
NO = "no"
TOOL_LIST = "Tools of the server"
TOOL_DETAIL = "Description and schema of the tool"
NO_TOOLS = "No tools"
NO_TOOLS_HINT = "They are listed while the server runs."
NO_DESCRIPTION = "The server gives no description."
SCHEMA = "Schema of the arguments"

ALLOWED_LIST = "Allowed tools"
NOTHING_ALLOWED = "No tools are allowed without asking"
NOTHING_ALLOWED_HINT = "“This Tool in This Chat” and “Always” in a chat add a tool here."
SCOPE = "Where"
SERVER = "Server"
ALWAYS = "All chats"
GONE_CHAT = "Deleted chat"
TAKE_BACK = "Revoke"
TAKE_BACK_ALL = "Revoke All"
ALLOWED_NOTE = (
    "A call of an allowed tool still needs permission if an address, path or command in it is not in your"
    " own messages, if the same call is repeated, or if the server’s command, the tool’s description or its"
    " schema has changed."
)

# ---- adding
ADD_SERVER = "Add Server"
EDIT_SERVER = "Edit Server"
SAVE = "Save"
NAME = "Name"
KIND = "Kind"
BY_COMMAND = "Command"
BY_ADDRESS = "Address"
COMMAND_HINT = "npx -y @modelcontextprotocol/server-memory"
ADDRESS_HINT = "https://example.org/mcp"
ENVIRONMENT_HINT = "NAME=value, one a line"
HEADERS_HINT = "Authorization: Bearer …, one a line"
SECRETS_NOTE = (
    "Values of names with KEY, TOKEN, SECRET, PASSWORD or AUTH, also in the command or address, and passwords"
    " in addresses are kept in the keychain, not in a file with your settings."
)
NOT_STARTED = "It is off until you switch it on."
NO_SHELL = "The command runs without a shell, so ~, $NAME, pipes and wildcards are not expanded."
BAD_QUOTES = "A quotation mark in the command is not closed."


def bad_line(line: str, form: str) -> str:
    return f"“{line}” is not {form}."


def enter_again(name: str) -> str:
    """A part of the text was changed whose secret is hidden."""
    return f"Enter the secret in “{name}” again, because the rest of it was changed."


VARIABLE_FORM = "NAME=value"
HEADER_FORM = "Name: value"

# ---- importing
IMPORT_TITLE = "Import Servers"
IMPORT_ACCEPT = "Import"
IMPORT_NOTE = (
    f"Found in settings of other programs on {MACHINE}. They are off until you switch them on. Read each"
    " command: it runs with your permissions."
)
NOTHING_FOUND = "No servers were found in Claude Desktop, LM Studio, Cursor or VS Code."
DONE = "Done"


def is_there(name: str) -> str:
    return f"{name} (a server with this name exists)"


def is_taken(name: str) -> str:
    return f"A server named “{name}” already exists. Choose another name."


def found_in(program: str) -> str:
    return f"In {program}"


def tools_count(count: int) -> str:
    return "No tools" if not count else "1 tool" if count == 1 else f"{count:,} tools"


def running(count: int, tokens: int | None) -> str:
    """“Running, 14 tools, 2,166 tokens.”"""
    size = "" if tokens is None else f", {tokens:,} tokens"
    return f"{READY}, {tools_count(count).lower()}{size}."


def remove_title(name: str) -> str:
    return f"Remove “{name}”?"


REMOVE_DETAIL = "The server is stopped, and its secrets are erased from the keychain. Calls in chats stay."
REMOVE_ANSWER = "Remove"


def spoken_tool(name: str, tokens: str, description: str) -> str:
    return f"{name}, {tokens} tokens. {description}" if tokens else f"{name}. {description}"


def spoken_allowance(tool: str, server: str, where: str) -> str:
    return f"{tool} of {server}, {where}"
