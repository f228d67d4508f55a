"""UI strings of projects."""

from __future__ import annotations

NEW_PROJECT = "New Project"
PROJECT_SETTINGS = "Project Settings"
NAME = "Name"
FOR_NEW_CHATS = "New chats in this project start with these settings. Other chats keep theirs."
SYSTEM_PROMPT = "System prompt"
SYSTEM_PROMPT_HINT = "Instructions for the model. If empty, those of the preset apply."
PRESET = "Preset"
USUAL_PRESET = "As other new chats"
MODEL = "Model"
USUAL_MODEL = "The loaded model"
DOCUMENTS = "Documents"
DOCUMENTS_NOTE = "Checked documents of the library are attached to each new chat in the project."
NO_DOCUMENTS = "The library is empty. Added files are kept in it."
ADD_FILES = "Add Files…"
ADD_FILES_TITLE = "Add Files to the Project"
CANCEL = "Cancel"
CREATE = "Create"
SAVE = "Save"
LOAD = "Load"
DELETE_TEXT = "The chats can be kept outside of the project, or moved to “Recently Deleted”."
KEEP_CHATS = "Keep Chats"
DELETE_CHATS = "Delete Chats"


def reading(name: str) -> str:
    return f"Reading {name}…"


def not_installed(model: str) -> str:
    return f"{model} (not installed)"


def delete_title(name: str, chats: int) -> str:
    return f"Delete the project “{name}” with {'1 chat' if chats == 1 else f'{chats:,} chats'}?"


def uses_model(name: str, model: str) -> str:
    return f"The project “{name}” uses {model}"


def misses_model(name: str, model: str) -> str:
    return f"The project “{name}” uses {model}, which is not installed"
