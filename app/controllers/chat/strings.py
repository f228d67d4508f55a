"""What the controllers of a chat say. Every text a person sees in it is here."""

from __future__ import annotations

from collections.abc import Sequence

ASK_NEXT = "Ask a follow-up…"
REPEATING_NOTE = "Stopped: the answer had begun to repeat itself."
STOPPED_EARLY_NOTE = "The worker stopped before this answer was finished."

EXPORT_TITLE = "Export"
IMPORT_TITLE = "Import Chats"
IMPORT_FILTER = "Chats (*.json *.md *.markdown *.txt)"
ALL_CHATS_FILE = "Draftlight chats"
SHOW_IN_FOLDER = "Show in Folder"
CHECK_FOLDER = "Look for it with your file manager."


def exported(name: str, chats: int, in_folder: bool) -> str:
    """`name` is the file's or, `in_folder`, that of the folder with a file for each chat."""
    what = "1 chat" if chats == 1 else f"{chats:,} chats"
    return f"Exported {what} into the folder “{name}”" if in_folder else f"Exported {what} as “{name}”"


ALL_PRESETS_FILE = "Draftlight presets"
IMPORT_PRESETS_TITLE = "Import presets"
PRESETS_FILTER = "Presets (*.json)"
PRESET_EXISTS_HINT = "Choose another name, or delete that preset first."


def preset_exists(name: str) -> str:
    return f"You have a preset called “{name}” already."


def exported_presets(name: str, presets: int) -> str:
    what = "1 preset" if presets == 1 else f"{presets:,} presets"
    return f"Exported {what} as “{name}”"


def imported_presets(names: Sequence[str]) -> str:
    return f"Imported the preset “{names[0]}”" if len(names) == 1 else f"Imported {len(names):,} presets"


def folder_not_shown(path: str) -> str:
    return f"The folder of {path} could not be opened."


def export_filter(ending: str) -> str:
    return "JSON (*.json)" if ending == "json" else "Markdown (*.md)"


NOT_SAVED_TITLE = "The chats cannot be saved."
NOTHING_SAVED = "What you write now is kept until you close this window."
DEFAULTS_NOT_SAVED = "The defaults hold until you close this window: they could not be saved."
DISK_IS_SLOW = "The disk is slow to write."
PREFERENCES_TITLE = "Your preferences could not be read."
EDITING = "You are editing a message. Sending it asks again from there."
EDITING_EARLIER = "You are editing an earlier message. Sending it continues in a new chat."


def not_saved_text(reason: str) -> str:
    return f"{reason} Everything is kept in memory and saving is tried again every few seconds."


UNSAVED_TITLE = "The last changes could not be read"


def preferences_lost(reason: str) -> str:
    return f"Draftlight starts with its own settings; the file was set aside. The reason: {reason}."


def unsaved_damaged(name: str) -> str:
    return (
        "When Draftlight last closed, the chat database could not be written. What it kept beside it is"
        f" damaged and cannot be read; the file is still there: {name}."
    )


def damaged_text(readable: int, lost: int, copy: str) -> str:
    chats = "1 chat can be read and is" if readable == 1 else f"{readable:,} chats can be read and are"
    gone = "" if not lost else f" {lost:,} pieces are lost." if lost > 1 else " One piece is lost."
    return f"{chats} shown.{gone} A copy of the file is kept: {copy}. {NOTHING_SAVED}"


def missing_text(there: int, lost: int, restorable: int) -> str:
    had = f"There were {there + lost:,}, and now there {'is' if there == 1 else 'are'} {there:,}."
    if not restorable:
        return f"{had} No backup has the others."
    back = "one of them" if restorable == 1 else f"{restorable:,} of them"
    return f"{had} The last backup has {back}. If they were meant to go, dismiss this notice."


def deleted(titles: Sequence[str]) -> str:
    return f"“{titles[0]}” deleted" if len(titles) == 1 else f"{len(titles):,} chats deleted"


def archived(title: str) -> str:
    return f"“{title}” archived"


def branch_title(title: str, number: int) -> str:
    return f"{title} ({number})"
