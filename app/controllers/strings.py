"""UI strings of the controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.gauges.figures import gigabytes
from app.session.turn.link_state import Phase

BLOCKED_BY_ANSWER = "An answer is being written. The race can start when that is done."
SETTINGS_NOT_SAVED = "Your settings could not be saved. Saving is retried every few seconds."
HELD = "Off for all chats, in Settings."
AFTER_RESTART = "Changes apply after the engine restarts."
NEXT_ANSWER = "Changes apply to the next answer."


def worker_detail(state: str, used_bytes: int, limit_bytes: int) -> str:
    if not used_bytes:
        return state
    if not limit_bytes:
        return f"{state} · {gigabytes(used_bytes)} GB"
    return f"{state} · {gigabytes(used_bytes)} of {gigabytes(limit_bytes)} GB"


ASK_NEXT = "Ask a follow-up…"
STOPPED_EARLY_NOTE = "The engine stopped before this answer was finished."

EXPORT_TITLE = "Export"
EXPORT_AS = {"pdf": "Export as PDF", "html": "Export as HTML"}
EXPORT_THOUGHTS = "Include the model’s thoughts"
EXPORT_TINTS = "Tint accepted drafts and bonus tokens"
EXPORT_ACCEPT = "Export…"
IMPORT_TITLE = "Import Chats"
IMPORT_FILTER = "Chats (*.zip *.json *.jsonl *.md *.markdown *.txt)"
STOP_IMPORT = "Stop"
IMPORT_STOPPED = "The import was stopped."
DETAILS = "Details…"
DONE = "Done"
EDIT_NOT_UNDONE = "The answer has changed since the edit. Its earlier version is still there."
UNDO = "Undo"
UNDO_IMPORT = "Undo Import"
ALL_CHATS_FILE = "Draftlight chats"
SHOW_IN_FOLDER = "Show in Folder"
CHECK_FOLDER = "Open it in your file manager."


def exported(name: str, chats: int, in_folder: bool) -> str:
    """`name` is the file's, or with `in_folder` that of a folder with a file for each chat."""
    what = "1 chat" if chats == 1 else f"{chats:,} chats"
    return f"Exported {what} into the folder “{name}”" if in_folder else f"Exported {what} as “{name}”"


def importing(name: str, percent: int, chats: int) -> str:
    return f"Importing “{name}”: {percent}%, {_chats(chats)}" if percent else f"Importing “{name}”…"


def imported(counts: Mapping[str, int], sources: Sequence[str]) -> str:
    """`counts`: chats by the result of their import."""
    new, updated = counts.get("added", 0) + counts.get("restored", 0), counts.get("updated", 0)
    known = counts.get("known", 0)
    programs = [source for source in sources if source]
    origin = f" from {' and '.join(programs)}" if 0 < len(programs) < 3 else ""
    if not (new or updated):
        return f"{_chats(known)}{origin} {'was' if known == 1 else 'were'} imported before."
    parts = [f"Imported {_chats(new)}{origin}"] if new else []
    if updated:
        parts.append(f"{'updated' if new else 'Updated'} {_chats(updated)}{'' if new else origin}")
    text = " and ".join(parts)
    return f"{text}; {known:,} {'was' if known == 1 else 'were'} imported before." if known else f"{text}."


_LOST = {
    "images": ("image", "images"),
    "recordings": ("recording", "recordings"),
    "files": ("file", "files"),
    "tools": ("tool call or result", "tool calls and results"),
    "instructions": ("custom instruction", "custom instructions"),
    "projects": ("project", "projects"),
    "versions": ("version", "versions"),
    "branches": ("branch", "branches"),
    "characters": ("damaged character", "damaged characters"),
    "messages": ("message", "messages"),
    "chats": ("item that is not a readable chat", "items that are not readable chats"),
}


def _lost(counts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{counts[kind]:,} {words[counts[kind] != 1]}" for kind, words in _LOST.items() if counts.get(kind)
    )


def not_kept(counts: Mapping[str, int]) -> str:
    return f"Not imported: {_lost(counts)}."


def lost_in(title: str, counts: Mapping[str, int]) -> str:
    return f"“{title}”: {_lost(counts)}"


def more_lost(chats: int) -> str:
    return f"and {chats:,} more"


def import_undone(chats: int) -> str:
    return f"Moved {_chats(chats)} to “Recently Deleted”."


def _chats(count: int) -> str:
    return "1 chat" if count == 1 else f"{count:,} chats"


PRESET_EXISTS_HINT = "Choose another name, or delete that preset first."


def preset_exists(name: str) -> str:
    return f"A preset named “{name}” already exists."


def folder_not_shown(path: str) -> str:
    return f"The folder of {path} could not be opened."


def export_filter(ending: str) -> str:
    names = {"json": "JSON", "html": "HTML", "pdf": "PDF"}
    return f"{names.get(ending, 'Markdown')} (*.{ending})"


ANSWER_EDITED = "The answer was edited. The model sees this version."
SAME_ANSWER = "The answer is the same: at temperature 0 the model always takes its likeliest words."
VARY_ANSWER = "Answer Differently"
MESSAGE_DELETED = "The question and its answer were deleted."
DELETE_LATER = "A question can be deleted when the current answer is complete."
EDIT_UNDONE = "The answer is as it was before the edit."
DRAWING_PAGES = "Pages without text are drawn as images, then the message is sent."
CANCEL_DRAWING = "Cancel"
SEND_EDIT_LATER = "An edited message cannot be queued. Send it when the model is ready for it."
EDIT_LATER = "An answer can be edited when the current one is complete."
EDIT_MESSAGE_LATER = "A message can be edited when the current answer is complete."
VERSIONS_LATER = "Other versions can be shown when the current answer is complete."
AFTER_THIS_ANSWER = "This chat is being answered. Stop that answer first, or try again after it."
AFTER_RACE = "A race is being recorded. Try again after it."
NOT_READY = {
    Phase.STARTING: "The engine is starting. Try again when the model is ready.",
    Phase.LOADING: "The model is loading. Try again when it is ready.",
    Phase.NO_MODEL: "No model is loaded. Load a model first.",
    Phase.DEAD: "The engine has stopped. Restart it first.",
}


def after_other_chat(title: str) -> str:
    return f"“{title}” is being answered. Try again after that answer, or stop it."


def answering_other_chat(title: str) -> str:
    return f"“{title}” is being answered, not this chat."


def failed_elsewhere(title: str, reason: str) -> str:
    return f"“{title}” was not answered. {reason}"


NO_ANSWER_TEXT = "The answer has no text yet."
NOT_SAVED_TITLE = "The chats cannot be saved."
NOTHING_SAVED = "Changes are kept in memory until you close this window."
DISK_IS_SLOW = "The disk is slow."
PREFERENCES_TITLE = "Your preferences could not be read."
EDITING = "You are editing a message. Sending it creates a new version of the answer."
EDITING_EARLIER = "You are editing an earlier message. Sending it continues in a new chat."


def not_saved_text(reason: str) -> str:
    return f"{reason} Changes are kept in memory, and saving is retried every few seconds."


CHATS_RESTORED_TITLE = "Your chats were restored."
SAVE_ELSEWHERE = "Save Elsewhere…"
SAVE_ELSEWHERE_TITLE = "Save Unsaved Chats"
UNSAVED_FILE = "Unsaved chats"
DISCARD = "Discard"
CANCEL = "Cancel"
CHOOSE_ANOTHER_PLACE = "Choose another folder."


def unsaved_title(count: int) -> str:
    return "One change is not saved." if count == 1 else f"{count:,} changes are not saved."


def unsaved_detail(why: str, beside: bool, chats: int, others: int) -> str:
    """`others` are changes of projects and documents."""
    kept = "The changes are lost unless you save the chats elsewhere, in a file that can be imported later."
    if beside:
        kept = "The changes were written to a file next to your chats; the next start restores them."
    elif not chats:
        kept = "The changes are lost: projects and documents cannot be saved elsewhere."
    elif others:
        kept += " Changes of projects and documents are lost."
    return f"{why} {kept}"


def preferences_lost(reason: str) -> str:
    return f"Draftlight uses its default settings, and the file was set aside. Reason: {reason}."


def deleted(titles: Sequence[str]) -> str:
    return f"“{titles[0]}” deleted" if len(titles) == 1 else f"{len(titles):,} chats deleted"


def moved(title: str, project: str) -> str:
    return f"“{title}” moved to “{project}”" if project else f"“{title}” moved out of its project"


def branch_title(title: str, number: int) -> str:
    return f"{title} ({number})"


def pages_undrawn(name: str, why: str) -> str:
    return f"Pages of “{name}” cannot be shown to the model: {why}."


# ---- tools
STARTING_TOOLS = "Starting the tools of this chat…"
CALL_NOT_STORED = "The call was not run, because the chat cannot be saved."
CALL_NOT_STORED_HINT = "Free some space on the disk, and ask again."


def tools_missing(names: Sequence[str]) -> str:
    """Notice that a question was sent without some of the chat's tools."""
    listed = ", ".join(f"“{name}”" for name in names)
    return f"Sent without {listed}: the server is not running. See the window “Tools”."


def no_tool(server: str, tool: str) -> str:
    """Why a permitted call cannot run."""
    return f"“{server}” no longer has the tool “{tool}”."


def image_of(tool: str, number: int) -> str:
    """The name of an image in a result."""
    return f"{tool} {number}"


def unseen_image(name: str) -> str:
    """Name of an image that is not sent to the model."""
    return f"image “{name}” (this model cannot see images)"


def results_left_out(count: int) -> str:
    what = "the oldest tool result is" if count == 1 else f"the {count} oldest tool results are"
    return f"The context is full: {what} left out."


SERVER_EXISTS_HINT = "Choose another name."


def server_exists(name: str) -> str:
    return f"A tool server named “{name}” already exists."


def server_died(name: str, *, runs: bool) -> str:
    if runs:
        return f"The tool server “{name}” ended and was restarted."
    return f"The tool server “{name}” ended again. Restart it in the window “Tools”."
