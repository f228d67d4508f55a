"""Every sentence that the window itself says (header, composer, banner, failures).

Plain functions and constants, so that they can be translated in one place. No logic beyond
plural forms and number formats; no Qt.
"""

from __future__ import annotations

from app.gauges.figures import gigabytes

APP_NAME = "Draftlight"
NEW_CHAT = "New chat"

# ---- header

TOKEN_TINT = "Token tint"
TINT_OPTIONS = (("always", "Always"), ("hover", "On hover"), ("never", "Never"))
SHOW_INSPECTOR = "Settings panel"
SHOW_SIDEBAR = "Chats panel"
HEADER_OPENS = {"race": "Race", "tables": "Tables", "lab": "Lab"}
WORKER_STOPPED = "Worker stopped"
MODEL_NAMES = {"starter": "the starter model"}


def header_subtitle(model: str, drafter: str, drafts: bool) -> str:
    """Under the chat's title."""
    return f"{model}, drafting with {drafter}" if drafts else f"{model}, drafting is off"


def header_stopped(model: str) -> str:
    return f"{model}, worker stopped" if model else WORKER_STOPPED


def header_loading(model: str) -> str:
    return f"Getting {model_name(model)} ready"


def model_name(model: str) -> str:
    """What to call a model that is not loaded, from how it was asked for."""
    return MODEL_NAMES.get(model) or model.rstrip("/").rpartition("/")[2] or model


# ---- composer

ASK_FIRST = "Ask anything, or drop a file"
ASK_NEXT = "Ask a follow-up…"
MESSAGE = "Message"
ATTACH = "Attach file"
DROP_TO_ATTACH = "Drop to attach"
SEND = "Send message"
STOP = "Stop answering"
PASTED_TEXT = "Pasted text"
BLOCKED_DEAD = "Sending is paused until the worker is back. Your draft is kept."
BLOCKED_STARTING = "The worker is starting. You can write already."
BLOCKED_LOADING = "The model is loading. You can write already."
BLOCKED_NO_MODEL = "Sending is paused because no model is loaded. Your draft is kept."


BLOCKED_BY_ANSWER = "An answer is being written. The race can start when that is done."
BLOCKED_BY_RACE = "A race is being recorded. This chat can be continued when that is done."


def blocked_by_other_chat(title: str) -> str:
    return f"“{title}” is being answered. This chat can be continued when that is done."


def tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"


def remove_attachment(name: str) -> str:
    return f"Remove {name}"


def stop_reading(name: str) -> str:
    return f"Stop reading {name}"


def show_attachment(name: str) -> str:
    return f"Show {name}"


def reading_first(name: str) -> str:
    return f"“{name}” is still being read."


def numbered(name: str, number: int) -> str:
    return f"{name} {number}"


CLOSE_PREVIEW = "Close preview"
BEGINNING = " (beginning)"
WAY_NEW_CHAT = "Continue in a new chat"


def beginning_of(name: str) -> str:
    return name if name.endswith(BEGINNING) else name + BEGINNING


def short(name: str) -> str:
    """For a label that has little room."""
    return name if len(name) <= 24 else f"{name[:14]}…{name[-9:]}"


def preview_cut(size: str, characters: int) -> str:
    return f"{size}, the first {characters:,} characters shown"


def over_limit(over_tokens: int, limit_tokens: int) -> str:
    over = "1 token" if over_tokens == 1 else f"{over_tokens:,} tokens"
    return f"This is {over} more than fit: the model takes {limit_tokens:,}."


def way_shorten(name: str, tokens: int) -> str:
    return f"Keep the first {tokens:,} tokens of {short(name)}"


def way_remove(name: str, tokens: int) -> str:
    return f"Remove {short(name)} ({tokens:,} tokens)"


def context_pill(used_tokens: int, limit_tokens: int) -> str:
    return f"{used_tokens:,} of {limit_tokens:,}"


def context_spoken(used_tokens: int, limit_tokens: int, skipped_tokens: int = 0) -> str:
    said = f"Context: {used_tokens:,} of {limit_tokens:,} tokens used"
    return f"{said}, {skipped_tokens:,} of them skipped when reading" if skipped_tokens else said


# ---- banner

RESTART_WORKER = "Restart worker"
TRY_AGAIN = "Try again"
DOWNLOAD_MODEL = "Download and load"
RESTORE_CHATS = "Restore from the backup"
REPAIR_CHATS = "Start a new database with them"
OPEN_TABLES = "Open Tables"
DETAILS = "Details"
HIDE_DETAILS = "Hide details"
CLOSE_BANNER = "Dismiss"
NEXT_TROUBLE = "Next"
LOG_NAME = "Last lines of the worker’s log"
NO_LOG = "The worker wrote nothing to its log."

DIED_TITLE = "The worker stopped unexpectedly."
DIED_LOADING_TITLE = "The worker stopped while the model was loading."
NOT_STARTED_TITLE = "The worker could not be started."
STUCK_TITLE = "The worker does not respond."
MODEL_FAILED_TITLE = "The model could not be loaded."
TEXT_IS_BACK = "Your text is back below."
UNFINISHED_NOTE = "Draftlight was closed before this answer was finished."
STOPPED_EARLY_NOTE = "The worker stopped before this answer was finished."
UNREADABLE_TITLE = "The worker sent something that cannot be read."


def smaller_context(tokens: int) -> str:
    return f"Smaller context: {tokens:,} tokens"


def trouble_count(number: int, count: int) -> str:
    return f"{number} of {count}"


def tables_refused(family: str) -> str:
    return f"Not all that was learned for {family} can be used."


def model_stays(name: str) -> str:
    return f"{name} stays loaded."


def ended_by_signal(name: str) -> str:
    """SIGKILL without our doing is most often the system's answer to full memory."""
    if name == "SIGKILL":
        return "It was ended by signal SIGKILL, which the system also sends when memory runs out."
    return f"It was ended by signal {name}."


def ended_with_status(returncode: int) -> str:
    return f"It ended by itself with status {returncode}."


def chat_kept(tokens_written: int | None) -> str:
    if tokens_written is None:
        return "The chats are kept."
    if tokens_written == 0:
        return "The chat is kept; the answer had not begun."
    return f"The chat is kept, with the {tokens(tokens_written)} written so far."


def silent_for(seconds: float) -> str:
    return f"Nothing was heard from it for {seconds:.0f} s. You can wait, or restart it; the chat is kept."


# ---- chats in files

EXPORT_TITLE = "Export"
IMPORT_TITLE = "Import chats"
IMPORT_FILTER = "Chats (*.json *.md *.markdown *.txt)"
ALL_CHATS_FILE = "Draftlight chats"


def export_filter(ending: str) -> str:
    return "JSON (*.json)" if ending == "json" else "Markdown (*.md)"


# ---- chats on disk

NOT_SAVED_TITLE = "The chats cannot be saved."
NOTHING_SAVED = "What you write now is kept until you close this window."
DEFAULTS_NOT_SAVED = "The defaults hold until you close this window: they could not be saved."
SETTINGS_NOT_SAVED = "The settings hold until you close this window: they could not be saved."
HELD = "Off for all chats, in Settings."
NO_FULL_TEXT = "This system has no full-text index, so each search looks through every text."
LOST_AT_THE_END = "Some chats could not be saved before the window closed."
DISK_IS_SLOW = "The disk takes long to write."
PREFERENCES_TITLE = "Your preferences could not be read."
EDITING = "You are editing a message. Sending it asks again from there."
EDITING_EARLIER = "You are editing an earlier message. Sending it goes on in a new chat."
CANCEL = "Cancel"


def not_saved_text(reason: str) -> str:
    return f"{reason} Everything is kept in memory and saving is tried again every few seconds."


def preferences_lost(reason: str) -> str:
    return f"Draftlight starts with its own settings; the file was set aside. The reason: {reason}."


def damaged_text(readable: int, lost: int, copy: str) -> str:
    chats = "1 chat can be read and is" if readable == 1 else f"{readable:,} chats can be read and are"
    gone = "" if not lost else f" {lost:,} pieces are lost." if lost > 1 else " One piece is lost."
    return f"{chats} shown.{gone} A copy of the file is kept: {copy}. {NOTHING_SAVED}"


def missing_text(there: int, lost: int, restorable: int) -> str:
    had = f"There were {there + lost:,}, and now there {'is' if there == 1 else 'are'} {there:,}."
    if not restorable:
        return f"{had} No backup has the others."
    back = "one of them" if restorable == 1 else f"{restorable:,} of them"
    return f"{had} The last backup has {back}. If they were meant to go, close this note."


def branch_title(title: str, number: int) -> str:
    return f"{title} ({number})"


# ---- sidebar footer

STARTING = "Starting"
LOADING = "Loading"
NO_MODEL = "No model loaded"
READY = "Ready"
READING = "Reading"
WRITING = "Writing"
STOPPING = "Stopping"
CLOSING = "Closing"
WORKER = "Worker"
STUCK = "Not responding"
RESTART_TO_GO_ON = "Restart it to go on"
AFTER_RESTART = "Changes apply after the worker restarts."
NEXT_ANSWER = "Changes apply to the next answer."


def worker_detail(state: str, used_bytes: int, limit_bytes: int) -> str:
    if not used_bytes:
        return state
    if not limit_bytes:
        return f"{state} · {gigabytes(used_bytes)} GB"
    return f"{state} · {gigabytes(used_bytes)} of {gigabytes(limit_bytes)} GB"


# ---- before there is a window

NO_DISPLAY = (
    "Draftlight needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set.\n"
    "Start it from a desktop session, or without a window: QT_QPA_PLATFORM=offscreen draftlight --smoke"
)


def missing_libraries(first: str, packages: str, others: int) -> str:
    if others:
        missing = f"system libraries are not installed ({first} and {others} more)"
    else:
        missing = f"the system library {first} is not installed"
    return (
        f"Draftlight cannot open a window: {missing}.\nOn Debian or Ubuntu: sudo apt-get install {packages}"
    )


# ---- scenarios without a person


def no_model_in_time(seconds: float) -> str:
    return f"The model was not ready within {seconds:.0f} s."


def no_answer_in_time(seconds: float) -> str:
    return f"The answer was not finished within {seconds:.0f} s."


def missing_origins(origins: str) -> str:
    return f"No token of these origins arrived: {origins}."


TEXT_DIFFERS = "The text in the window is not the text of the tokens."
WORKER_FAILED = "The worker failed"


def not_saved(path: str) -> str:
    return f"The picture could not be saved to {path}."


# ---- what the doctor says of the window

DOCTOR_DISPLAY = "Window"
DOCTOR_FONTS = "Fonts"
DOCTOR_NO_DISPLAY = "No display here; looked at off-screen."
DOCTOR_NO_FONTS = "Qt finds no font at all, so no text can be shown."
DOCTOR_NO_FONTS_HINT = "On Debian or Ubuntu: sudo apt-get install fontconfig fonts-inter fonts-jetbrains-mono"
DOCTOR_MONO_HINT = "Code lines up better with a fixed-width font, such as JetBrains Mono."
DOCTOR_NO_SCREEN = "no screen"


def doctor_display(qt: str, bindings: str, platform: str, screen: str) -> str:
    return f"Qt {qt} (PySide6 {bindings}) on {platform}, {screen}"


def doctor_screen(width_px: int, height_px: int, ratio: float) -> str:
    return f"{width_px} × {height_px} at {ratio:g} pixels a point"


def doctor_fonts(text: str, code: str) -> str:
    return f"{text} for text, {code} for code"
