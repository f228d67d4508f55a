"""UI strings of this package."""

from __future__ import annotations

from collections.abc import Sequence

from core.documents import strings as document_strings
from core.events import ModelInfo
from core.prefill.forecast import ReadingForecast, duration

NEW_CHAT = "New chat"

TOKEN_COLORS = "Token colors"
TOKEN_COLORS_OPTIONS = (("drafts", "Drafts"), ("origins", "Origins"), ("off", "Off"))
SERVER = "Local server, click to copy its address"
CHOOSE_MODEL = "Choose model"
SHOW_INSPECTOR = "Settings panel"
SHOW_SIDEBAR = "Chats panel"

# ---- the column at the right
SIDE_TABS = (("settings", "Settings"), ("document", "Document"))
SIDE_TABS_NAME = "Panel"
CLOSE_PANEL = "Close panel"


def new_chat_in(project: str) -> str:
    return f"New chat in “{project}”"


# ---- sidebar
CHATS = "Chats"
HIDE_SIDEBAR = "Hide sidebar"
MORE = "Projects, export and import"
SEARCH_CHATS = "Search chats"
NOT_FOUND = "Nothing found for “{query}”."
CHAT_TITLE = "Title"
RENAME = "Rename"
PIN = "Pin to Top"
UNPIN = "Unpin"
DELETE = "Delete"
MOVE_TO_PROJECT = "Move to Project"
NO_PROJECT = "No Project"
NEW_PROJECT = "New Project…"
NEW_CHAT_IN_PROJECT = "New Chat in Project"
PROJECT_SETTINGS = "Project Settings…"
DELETE_PROJECT = "Delete Project…"
PROJECTS = "Projects"
PROJECT_NAME = "Project name"
PROJECT = "project"
COLLAPSED = "collapsed"
EXPORT_MARKDOWN = "Export as Markdown…"
EXPORT_JSON = "Export as JSON…"
EXPORT_PDF = "Export as PDF…"
EXPORT_HTML = "Export as HTML…"
EXPORT_ALL_MARKDOWN = "Export All as Markdown…"
EXPORT_ALL_JSON = "Export All as JSON…"
EXPORT_ALL_PDF = "Export All as PDF…"
EXPORT_ALL_HTML = "Export All as HTML…"
# By kind: of one chat, of all.
EXPORTS = {
    "pdf": (EXPORT_PDF, EXPORT_ALL_PDF),
    "html": (EXPORT_HTML, EXPORT_ALL_HTML),
    "markdown": (EXPORT_MARKDOWN, EXPORT_ALL_MARKDOWN),
    "json": (EXPORT_JSON, EXPORT_ALL_JSON),
}
IMPORT = "Import Chats…"
NO_CHATS = "Your chats will be listed here."
UNTITLED = "New chat"
PINNED = "Pinned"
BUSY = "being answered"
STOP_GENERATING = "Stop Generating"
TODAY = "Today"
YESTERDAY = "Yesterday"
PREVIOUS_7_DAYS = "Previous 7 days"
PREVIOUS_30_DAYS = "Previous 30 days"
EARLIER = "Earlier"
WORKER = "Engine"
MODELS = "Models"


def project_chats(count: int) -> str:
    return "1 chat" if count == 1 else f"{count:,} chats"


def results(count: int) -> str:
    return "1 chat found" if count == 1 else f"{count:,} chats found"


# ---- document
KEEP_IN_LIBRARY = "Keep in Library"
DOCUMENT_TEXT = "Document text"
DOCUMENT_MAP = "Map of the document"
FIND_IN_DOCUMENT = "Find in document"
DOCUMENT_CHOICE = "Document"
DOCUMENT_FILTER = (("all", "All"), ("kept", "Kept only"))
DOCUMENT_STYLES = (("formatted", "Formatted"), ("text", "Text"))
DOCUMENT_STYLE_NAME = "How the document is shown"
TEXT_ONLY = "{note} · too long to format"
TEXT_ONLY_SAYS = "Documents of more than {most:,} characters are shown as text, without formatting."
DOCUMENT_FILTER_NAME = "Which passages"
PREVIOUS_PASSAGE = "Previous kept passage"
NEXT_PASSAGE = "Next kept passage"
DOCUMENT_NOTE = "{size} · {kept:,} of {passages:,} passages kept"
NOTHING_READ = "{size} · not read"
EARLIER_ANSWER = "{note} · for an earlier answer"
NO_DOCUMENT = "No document in this chat yet. Paste or drop one into the message to see it here."
NO_PAGE_SEEN = "Its page without text was not read as an image."


def pages_seen(numbers: Sequence[int], count: int) -> str:
    """`numbers` of the `count` pages without text were read as images."""
    if not numbers:
        return (
            NO_PAGE_SEEN if count == 1 else f"None of its {count:,} pages without text was read as an image."
        )
    words = document_strings.pages(numbers)
    some = f", of {count:,} without text" if len(numbers) < count else ""
    return f"{words[0].upper()}{words[1:]} read as {'an image' if len(numbers) == 1 else 'images'}{some}"


def page_caption(number: int) -> str:
    return f"Page {number:,}"


PASSAGE_OF = "Kept passage {number} of {count}: {text}"

# ---- inspector
SETTINGS = "Settings"
FOOTER = "Changes apply to the next answer."
MODEL = "Model"
NO_MODEL = "No model is loaded."
CHOOSE_ANOTHER_MODEL = "Choose Another…"
SPECULATES = "The model checks each draft; rejected tokens are removed from its cache exactly."
SPECULATES_NOT = "Drafts are not used: {why}"
KV_NOT_QUANTISED = "Not available for this model: {why}."
PRESET = "Preset"
NO_PRESET = "Default"
CUSTOM_PRESET = "Custom"
SAVE_PRESET_AS = "Save as Preset…"
SAVE_PRESET_TITLE = "Save as Preset"
PRESET_NAME = "Name of the preset"
PRESET_ACTIONS = "Save and change presets"
RENAME_PRESET = "Rename…"
RENAME_PRESET_TITLE = "Rename Preset"
DELETE_PRESET = "Delete"
MODEL_DEFAULT = "Model default."
MODEL_DEFAULT_MOVED = "Nearest allowed value to the model’s default of {given:,g}."
CHOSEN_HERE = "Set for this chat. Model default: {value}."
CHOSEN_FOR_ALL = "Your default. Model default: {value}."
OWN_SETTINGS = "Set for this chat only"
RESET_SECTION = "Reset to Defaults"
MAKE_DEFAULT = "Make Default"
RESET_NAME = "{section}: reset to defaults"
MAKE_DEFAULT_NAME = "{section}: make default for all chats"
OPEN_SECTION = "Open"
CLOSED_SECTION = "Closed"

ADVANCED = "Advanced"

GROUP_TITLES = {
    "basics": "Answers",
    "drafting": "Drafting",
    "gate": "Draft gating",
    "sampling": "Sampling",
    "prefill": "Sparse prefill",
    "kv": "KV cache",
    "tables": "Learning",
    "look": "Appearance",
    "writing": "Writing",
    "allowed": "For all chats",
    "memory": "Memory use",
    "server": "Local server",
}

# Summary at the right of a closed section: setting keys and their formats.
SUMMARIES: dict[str, tuple[tuple[str, str], ...]] = {
    "basics": (("drafting.drafter", "{}"), ("sampling.temperature", "temp {}"), ("prefill.mode", "{}")),
    "gate": (("gate.mode", "{}"),),
    "sampling": (
        ("sampling.top_p", "top-p {}"),
        ("sampling.seed", "seed {}"),
    ),
    "kv": (("kv.bits", "{}"),),
    "tables": (("tables.learn", "learning {}"),),
}
SUMMARY_SEPARATOR = " · "
QUOTED = "“{}”"
ON = "on"
OFF = "off"


def reads(will: ReadingForecast, *, exact: bool = True) -> str:
    """How much of the message will be read, and how long that takes; not `exact`: by estimated tokens."""
    takes = f", about {duration(will.read_s)}" if will.read_s else ""
    new = f"{will.new_tokens:,}" if exact else f"~{will.new_tokens:,}"
    if will.read_tokens == will.new_tokens:
        return f"Reads all {new} new tokens{takes}"
    words = f"Reads about {will.read_tokens:,} of {new} tokens"
    if not will.all_fits:
        return f"{words}, as not all fit the context{takes}"
    return f"{words}{takes} instead of {duration(will.dense_s)}" if takes and will.dense_s else words


def tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


def model_facts(info: ModelInfo) -> str:
    """The loaded model in sentences."""
    precision = info.dtype
    if info.quantisation and info.quantisation != info.dtype:
        precision = f"{info.dtype}, from {info.quantisation}"
    facts = f"{info.name}, of the tokenizer family {info.family_name}, in {precision}."
    drafts = SPECULATES if info.speculates else SPECULATES_NOT.format(why=info.why_not)
    context = f"Its context is {tokens(info.context_tokens)}."
    return " ".join(filter(None, (facts, context, drafts, info.defaults_problem)))


def update_preset(name: str) -> str:
    return f"Save changes to “{name}”"
