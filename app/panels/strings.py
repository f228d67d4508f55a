"""The words of the side panels, and how settings are called and summed up there."""

from __future__ import annotations

from collections.abc import Sequence

# ---- inspector

SETTINGS = "Settings"
FOOTER = "Changes apply to the next answer."
MODEL = "Model"
NO_MODEL = "No model is loaded."
CHOOSE_MODEL = "Choose another…"
MODEL_NAME = "Name"
MODEL_FAMILY = "Family"
MODEL_CONTEXT = "Context"
MODEL_CONTEXT_TOKENS = "{tokens} tokens"
MODEL_PRECISION = "Precision"
MODEL_PRECISION_FROM = "{dtype}, from {quantisation}"
SPECULATES = "Drafts are checked by the model and undone exactly."
SPECULATES_NOT = "Drafts are not used: {why}"
OWN_SETTINGS = "Set for this chat only"
RESET_SECTION = "Reset to defaults"
MAKE_DEFAULT = "Make default"
RESET_NAME = "{section}: reset to defaults"
MAKE_DEFAULT_NAME = "{section}: make default for all chats"
OPEN_SECTION = "Open"
CLOSED_SECTION = "Closed"
SYSTEM_PROMPT_EMPTY = "The model’s own"

GROUP_TITLES = {
    "drafting": "Drafting",
    "gate": "When to draft",
    "decoding": "Exactness",
    "sampling": "Sampling",
    "prefill": "Reading",
    "tables": "Memory",
    "chat": "System prompt",
    "look": "Look",
    "writing": "Writing",
    "allowed": "For all chats",
    "updates": "New versions",
}

# What a closed section says at the right: setting keys and how each is written.
SUMMARIES: dict[str, tuple[tuple[str, str], ...]] = {
    "drafting": (("drafting.drafter", "{}"),),
    "gate": (("gate.mode", "{}"),),
    "decoding": (("decoding.exactness", "{}"),),
    "sampling": (
        ("sampling.temperature", "temp {}"),
        ("sampling.top_p", "top-p {}"),
        ("sampling.seed", "seed {}"),
    ),
    "prefill": (("prefill.mode", "{}"), ("prefill.keep_pct", "keep {} %")),
    "tables": (("tables.learn", "learning {}"),),
    "chat": (("chat.system_prompt", "{}"),),
}
SUMMARY_SEPARATOR = " · "
QUOTED = "“{}”"
ON = "on"
OFF = "off"

# ---- settings of the app

APP_SETTINGS = "Settings"
RESET_APP_SETTINGS = "Reset these settings"
AT_ONCE = "Changes apply at once, in all chats."
NEW_CHATS = "New chats"
RESET_DEFAULTS = "Reset the defaults for new chats"


def defaults_note(own: int) -> str:
    start = (
        "How answers are drafted, read and sampled is set in the panel beside each chat."
        " “Make default” there is what new chats start with."
    )
    if not own:
        return f"{start} They start with Draftlight’s own settings now."
    return f"{start} They start with {'1 setting' if own == 1 else f'{own} settings'} of yours now."


# ---- sidebar

CHATS = "Chats"
NEW_CHAT = "New chat"
HIDE_SIDEBAR = "Hide sidebar"
MORE = "Export and import"
SEARCH_CHATS = "Search chats"
CLEAR_SEARCH = "Clear search"
NOT_FOUND = "Nothing found for “{query}”."
CHAT_TITLE = "Title"
RENAME = "Rename…"
PIN = "Pin to the top"
UNPIN = "Unpin"
DELETE = "Delete"
UNDO = "Undo"
EXPORT_MARKDOWN = "Export as Markdown…"
EXPORT_JSON = "Export as JSON…"
EXPORT_ALL_MARKDOWN = "Export all as Markdown…"
EXPORT_ALL_JSON = "Export all as JSON…"
IMPORT = "Import chats…"
NO_CHATS = "Your chats will be listed here."
UNTITLED = "New chat"
PINNED = "Pinned"
TODAY = "Today"
YESTERDAY = "Yesterday"
PREVIOUS_7_DAYS = "Previous 7 days"
PREVIOUS_30_DAYS = "Previous 30 days"
EARLIER = "Earlier"
WORKER = "Worker"
MODELS = "Models"

# ---- the column at the right
SIDE_TABS = (("settings", "Settings"), ("document", "Document"))
SIDE_TABS_NAME = "Panel"

# ---- document
DOCUMENT_TEXT = "Document text"
DOCUMENT_MAP = "Map of the document"
FIND_IN_DOCUMENT = "Find in document"
DOCUMENT_CHOICE = "Document"
DOCUMENT_FILTER = (("all", "All"), ("kept", "Kept only"))
DOCUMENT_FILTER_NAME = "Which passages"
PREVIOUS_PASSAGE = "Previous kept passage"
NEXT_PASSAGE = "Next kept passage"
DOCUMENT_NOTE = "{size} · {kept:,} of {passages:,} passages kept"
NO_DOCUMENT = "No document in this chat yet. Paste or drop one into the message to see it here."
PASSAGE_OF = "Kept passage {number} of {count}: {text}"


def results(count: int) -> str:
    return "1 chat found" if count == 1 else f"{count:,} chats found"


def deleted(titles: Sequence[str]) -> str:
    return f"“{titles[0]}” deleted" if len(titles) == 1 else f"{len(titles):,} chats deleted"
