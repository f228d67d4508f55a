"""UI strings of this package."""

from __future__ import annotations

from app.chat.reading_facts import duration

SETTINGS = "Settings"
FOOTER = "Changes apply to the next answer."
MODEL = "Model"
NO_MODEL = "No model is loaded."
CHOOSE_MODEL = "Choose Another…"
MODEL_NAME = "Name"
MODEL_FAMILY = "Family"
MODEL_CONTEXT = "Context"
MODEL_CONTEXT_TOKENS = "{tokens} tokens"
MODEL_PRECISION = "Precision"
MODEL_PRECISION_FROM = "{dtype}, from {quantisation}"
SPECULATES = "Drafts are checked by the model and undone exactly."
SPECULATES_NOT = "Drafts are not used: {why}"
PRESET = "Preset"
NO_PRESET = "Default"
CUSTOM_PRESET = "Custom"
SAVE_PRESET_AS = "Save as Preset…"
SAVE_PRESET_TITLE = "Save as Preset"
PRESET_NAME = "Name of the preset"
PRESET_ACTIONS = "Save, import and export presets"
RENAME_PRESET = "Rename…"
RENAME_PRESET_TITLE = "Rename Preset"
DELETE_PRESET = "Delete"
IMPORT_PRESETS = "Import Presets…"
EXPORT_OWN_PRESETS = "Export All Presets…"
MODEL_DEFAULT = "Model default."
MODEL_DEFAULT_MOVED = "Model default; its {given:,g} is not allowed."
CHOSEN_HERE = "Set for this chat. Model default: {value:g}."
CHOSEN_FOR_ALL = "Your default. Model default: {value:g}."
NO_THINKING_SWITCH = "This model has no switch for it."
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
    "decoding": "Exactness",
    "sampling": "Sampling",
    "prefill": "Sparse prefill",
    "kv": "KV cache",
    "tables": "Learning",
    "chat": "Thinking",
    "look": "Appearance",
    "writing": "Writing",
    "allowed": "For all chats",
    "memory": "Memory use",
    "updates": "Updates",
    "server": "Local server",
}

# What a closed section says at the right: setting keys and how each is written.
SUMMARIES: dict[str, tuple[tuple[str, str], ...]] = {
    "basics": (("sampling.temperature", "temp {}"), ("prefill.mode", "{}")),
    "drafting": (("drafting.drafter", "{}"),),
    "gate": (("gate.mode", "{}"),),
    "decoding": (("decoding.exactness", "{}"),),
    "sampling": (
        ("sampling.top_p", "top-p {}"),
        ("sampling.seed", "seed {}"),
    ),
    "prefill": (("prefill.keep_pct", "keep {}%"),),
    "kv": (("kv.bits", "{}"), ("kv.start_tokens", "from {} tokens")),
    "tables": (("tables.learn", "learning {}"),),
}
SUMMARY_SEPARATOR = " · "
QUOTED = "“{}”"
ON = "on"
OFF = "off"


def reads(new_tokens: int, skipped_tokens: int, dense_s: float | None) -> str:
    """How much of the message will be read."""
    read_tokens = new_tokens - skipped_tokens
    if not skipped_tokens:
        after = f", about {duration(dense_s)}" if dense_s else ""
        return f"Reads all {new_tokens:,} tokens of the message{after}"
    words = f"Reads about {read_tokens:,} of {new_tokens:,} tokens"
    if not dense_s:
        return words
    return f"{words}, about {duration(dense_s * read_tokens / new_tokens)} instead of {duration(dense_s)}"


def modified(name: str) -> str:
    """A preset with settings changed in this chat."""
    return f"{name} (modified)"


def update_preset(name: str) -> str:
    return f"Save changes to “{name}”"


def default_preset(name: str) -> str:
    return f"Start new chats with “{name}”"


def export_preset(name: str) -> str:
    return f"Export “{name}”…"
