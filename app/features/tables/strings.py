"""The words of the Tables window."""

from __future__ import annotations

from core.events import TableAction

TITLE = "Tables"
SUBTITLE = "Learned data of the n-gram drafters, by tokenizer family"
SAVE = "Save Now"
LOAD = "Load Saved…"
IMPORT = "Import…"
EXPORT = "Export…"
RESET = "Reset…"
LIST = "Tables"

# ---- columns

FAMILY = "Tokenizer family"
ENTRIES_USED = "Entries used"
HITS = "Hits"
ACCEPTED = "Accepted"
ON_DISK_COLUMN = "On disk"
SAVED = "Saved"
CHATS = "Your chats"
LEARNED_FROM = "Learned from"

LOADED = "Loaded"
ON_DISK = "On disk"
SHIPPED = "Shipped, read only"
BUILT = "Built here"
NOT_SAVED = "Not yet"
HALF_FULL = "more than half full"

# ---- one table

NONE_YET = "No tables yet"
NONE_YET_HINT = "They grow while you chat."
READ_ONLY_TABLE = "Chats do not change this table."

PRIVACY = (
    "A table stores single tokens under a hash of the tokens before them. It holds no text and no names"
    " of chats, but someone with the file and the beginning of one of your texts can reconstruct the rest."
    " It stays on this computer; Reset erases it."
)
SHOW_FOLDER = "Show Folder"

# ---- questions

CANCEL = "Cancel"
RESET_YES = "Reset"
LOAD_YES = "Load Saved"
LOAD_PREVIOUS = "Load Previous Save"
EXPORT_TITLE = "Export Table"
IMPORT_TITLE = "Import Table"
FILE_FILTER = "Draftlight tables (*.safetensors)"

# ---- messages

WORKING: dict[TableAction, str] = {
    "save": "Saving…",
    "load": "Loading…",
    "reset": "Resetting…",
    "export": "Exporting…",
    "import": "Importing…",
}
AFTER_ANSWER = "It waits for the running answer."
WORKER_GONE = "The engine is not running, so nothing can be changed now."
ONE_AT_A_TIME = "Another action is running."
NOTHING_CHOSEN = "Choose a table first."
NO_MODEL = "No model is loaded."
OTHER_FAMILY = "Only tables of the loaded model are in memory."
NOTHING_SAVED = "Nothing was saved yet."
CLOSE_NOTICE = "Dismiss"
SAVE_HELP = "Save all entries since the last save. Tables are also saved automatically."
LOAD_HELP = "Read the saved tables of the loaded model again, or go back to the previous save."
IMPORT_HELP = "Import a table from a file. The one it replaces becomes the previous save."
EXPORT_HELP = "Write a copy of the selected table to a file."
RESET_HELP = "Erase all learned data for the selected tokenizer family."


def entries_of(used: int, slots: str, share: float) -> str:
    percent = "<0.1%" if 0 < share < 0.001 else f"{share:.1%}"
    return f" of {slots} · {percent}"


def entries(count: int) -> str:
    return f"{count:,} entry" if count == 1 else f"{count:,} entries"


def contexts(count: int) -> str:
    return f"{count:,} contexts"


def windows_of(n: int) -> str:
    return f"Windows of {n}" if n else "Short n-grams"


def unsaved(count: int) -> str:
    return f"{entries(count)} since"


def saved(ago: str) -> str:
    return f"saved {ago}"


NEVER_SAVED = "not saved yet"
JUST_NOW = "just now"


def minutes_ago(minutes: int) -> str:
    return f"{minutes} minute{'s' * (minutes != 1)} ago"


def hours_ago(hours: int) -> str:
    return f"{hours} hour{'s' * (hours != 1)} ago"


def on(day: str) -> str:
    return f"on {day}"


def tables(count: int, size: str) -> str:
    return f"{count} table{'s' * (count != 1)}, {size or 'nothing'} on disk"


def read_only(family: str, why: str) -> str:
    return f"The {family} tables are read only here: {why}."


def set_aside(files: int) -> str:
    if files == 1:
        return "1 file could not be used. It was not deleted:"
    return f"{files} files could not be used. They were not deleted:"


def more(files: int) -> str:
    return f"(and {files} more)"


def reset_question(family: str) -> str:
    return f"Reset the {family} tables?"


def reset_detail(count: int) -> str:
    return (
        f"{entries(count)} will be removed, from memory and from disk, the previous save and files set aside"
        " included. No backup is kept."
    )


def load_question(family: str) -> str:
    return f"Load the saved {family} tables again?"


def load_detail(unsaved_entries: int, previous: bool) -> str:
    lost = (
        f"{entries(unsaved_entries)} learned since the last save will be dropped."
        if unsaved_entries
        else "Nothing is lost: everything is saved."
    )
    return f"{lost} You can also go back to the previous save." if previous else lost


def working(action: TableAction, *, waits: bool) -> str:
    return f"{WORKING[action]} {AFTER_ANSWER}" if waits else WORKING[action]


def no_folder(path: str) -> str:
    return f"{path} could not be shown." if path else "The folder is made when a table is first saved."


def done(action: TableAction, family: str, count: int, path: str) -> str:
    match action:
        case "save":
            return f"Saved {entries(count)} of {family}." if count else f"{family} was saved already."
        case "load":
            return f"Loaded {entries(count)} of {family}."
        case "reset":
            return f"Reset {family}: {entries(count)} removed."
        case "export":
            return f"Exported {entries(count)} of {family} to {path}."
        case "import":
            return f"Imported {entries(count)} of {family}."
