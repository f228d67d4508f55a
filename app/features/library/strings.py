"""UI strings of the library."""

from __future__ import annotations

TITLE = "Library"
SUBTITLE = "Documents that you keep for any chat"
ATTACH = "Attach to Chat"
RENAME = "Rename"
REMOVE = "Remove"
SEARCH = "Search documents"
CLEAR_SEARCH = "Clear search"
NAME = "Name"
TOKENS = "Tokens"
ADDED = "Added"
USED = "Last used"
LIST = "Kept documents"
PREVIEW = "Preview"
NOTHING = "No document is kept yet"
NOTHING_HINT = "Attach one to a message, open it, and choose “Keep in library”."
NO_MATCH = "No document has these words"


def characters(count: int) -> str:
    return "1 character" if count == 1 else f"{count:,} characters"


def removed(name: str) -> str:
    return f"“{name}” removed"


def spoken(name: str, tokens: str, added: str, used: str) -> str:
    return f"{name}, {tokens}, {ADDED.lower()} {added}, {USED.lower()} {used}"


def cut(size: str, shown_characters: int) -> str:
    return f"{size}, the first {shown_characters:,} characters shown"


def similar(passage: str) -> str:
    """The note of results found by meaning."""
    return f"Similar passage: {passage}"


SHOW_LIBRARY = "Show Library"
GONE = "It is not in the library any more."


def kept(name: str) -> str:
    return f"“{name}” is kept in the library"


def kept_already(name: str) -> str:
    return f"This text is in the library already, as “{name}”"


def attached_already(name: str) -> str:
    return f"“{name}” is attached already"
