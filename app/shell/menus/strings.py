"""What the menus say. An ampersand marks the letter that opens a menu with Alt, where there are such."""

from __future__ import annotations

CHAT = "&Chat"
EDIT = "&Edit"
VIEW = "&View"
ANSWER = "&Answer"
WINDOW = "&Window"
HELP = "&Help"

NEW_CHAT = "New chat"
ATTACH = "Attach file…"
RENAME = "Rename chat…"
PIN = "Pin or unpin chat"
ARCHIVE = "Archive or unarchive chat"
DELETE = "Delete chat"
UNDO_DELETE = "Undo delete"
ARCHIVED = "Archived chats…"
DELETED = "Recently deleted…"
EXPORT_MARKDOWN = "Export as Markdown…"
EXPORT_JSON = "Export as JSON…"
IMPORT = "Import chats…"
SETTINGS = "Settings…"
CLOSE = "Close window"
QUIT = "Quit Draftlight"

UNDO = "Undo"
REDO = "Redo"
CUT = "Cut"
COPY = "Copy"
PASTE = "Paste"
PASTE_RAW = "Paste as text"
SELECT_ALL = "Select all"
QUOTE = "Quote selection in message"
SEARCH = "Search chats"
FIND = "Find in chat"
FIND_NEXT = "Find next"
FIND_PREVIOUS = "Find previous"

SIDEBAR = "Chats panel"
INSPECTOR = "Settings panel"
DOCUMENT = "Document"
NEXT_PASSAGE = "Next kept passage"
PREVIOUS_PASSAGE = "Previous kept passage"
TINT = "Next token tint"
ZOOM_IN = "Zoom in"
ZOOM_OUT = "Zoom out"
ZOOM_RESET = "Actual size"

STOP = "Stop answering"
REGENERATE = "Regenerate"
EDIT_LAST = "Edit last message"
RESTART = "Restart worker"

RACE = "Race"
TABLES = "Tables"
LAB = "Lab"
MODELS = "Models"
ALL_MODELS = "All models…"
NO_MODELS = "No other model is installed"
DRAFT_MODEL = "Draft model"
NO_DRAFT_MODEL = "None"


def model(name: str, fit: str) -> str:
    """A row of the model menu."""
    return f"{name}   ·   {fit}" if fit else name


SHORTCUTS = "Keyboard shortcuts"
ABOUT = "About Draftlight"
UPDATE = "A newer version…"
