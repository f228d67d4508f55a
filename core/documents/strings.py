"""What reading a document says. Every text a person sees in it is here, so it can be translated."""

from __future__ import annotations

KIND_PICTURE = ("a picture", "Pictures cannot be attached; paste the words it shows.")
KIND_ARCHIVE = ("an archive", "Unpack it and attach the texts inside.")
KIND_SOUND = ("a sound", "Only texts can be attached.")
KIND_PROGRAM = ("a program", "Only texts can be attached.")
KIND_OUTLOOK = ("an Outlook message", "Save it as .eml, HTML or text.")
KIND_OLD_OFFICE = ("an old Word or PowerPoint file", "Save it as .docx or .pptx, or as plain text.")
KIND_OPEN_DOCUMENT = ("a document of another program", "Save it as .docx or PDF.")
KIND_BINARY = (
    "not a text",
    "Text, code, HTML, PDF, Office, OpenDocument, rich text and mail files can be attached.",
)
PASTE_PART = "Paste the part that matters."
CHECK_FILE = "Check the file."
ATTACH_FILES = "Choose a file or a folder."
EMPTY_HINT = "Choose another file, or paste the text."
UNLOCK = "Save a copy without the password and attach that."
SAVE_AGAIN = "Open it in Word and save it again."
ENDED_BY_SIGNAL = "its reader was ended by {signal}"
ENDED_WITH = "its reader ended with status {status}"
NOT_STARTED = "its reader could not be started ({why})"


# Why something in a folder is left out.
IS_LINK = "a link to something else"
IS_HIDDEN = "hidden"
OF_PROGRAMS = "a folder that programs fill"
TOO_DEEP = "too many folders inside each other"
NO_FILE = "not a file"


def folder_unreadable(name: str, why: str) -> str:
    return f"The folder “{name}” cannot be read: {why}."


def folder_full(most_files: int) -> str:
    return f"more than {most_files:,} files"


def folder_too_large(most_entries: int) -> str:
    return f"the folder has more than {most_entries:,} files and folders"


def file_is(name: str, what: str) -> str:
    return f"“{name}” is {what}."


def not_a_file(name: str) -> str:
    return f"“{name}” is not a file."


def file_size(name: str, size_bytes: int, most_bytes: int) -> str:
    return f"“{name}” has {_megabytes(size_bytes)}, the most is {_megabytes(most_bytes)}."


def file_needs_memory(name: str, most_bytes: int) -> str:
    return f"“{name}” takes more than {_megabytes(most_bytes)} of memory to read."


def aborted(most_bytes: int) -> str:
    return f"its reader was aborted, usually because it needs more than {_megabytes(most_bytes)} of memory"


def file_takes_long(name: str, seconds: float) -> str:
    return f"“{name}” could not be read in {seconds:,.0f} s."


def file_stands_still(name: str, seconds: float) -> str:
    return f"“{name}” was given up: reading it got no further for {seconds:,.0f} s."


def file_too_long(name: str, most_characters: int) -> str:
    return f"“{name}” holds more than {most_characters:,} characters."


def file_unpacks_to(name: str, size_bytes: int, most_bytes: int) -> str:
    return f"“{name}” unpacks to {_megabytes(size_bytes)}, the most is {_megabytes(most_bytes)}."


def file_unreadable(name: str, why: str) -> str:
    return f"“{name}” cannot be read: {why}."


def file_empty(name: str) -> str:
    return f"“{name}” holds no text."


def file_scanned(name: str) -> str:
    return f"“{name}” holds no text: this PDF has no text layer, only pictures of pages."


def file_locked(name: str) -> str:
    return f"“{name}” is locked with a password."


def file_damaged(name: str, kind: str) -> str:
    return f"“{name}” is damaged, or not a valid {kind} file."


def file_encoded(name: str, encoding: str) -> str:
    return f"The text of “{name}” is in an encoding that Word does not use ({encoding})."


def hidden_text(words: int) -> str:
    """The last line of a text whose file has text that its own program does not show."""
    return f"[left out: {words:,} {'word' if words == 1 else 'words'} that the file hides]"


def attachment_left_out(name: str) -> str:
    return f"[left out: the attachment “{name}”]"


def hidden_sheet(name: str) -> str:
    return f"[left out: the sheet “{name}”, which the file hides]"


def hidden_rows(first: int, last: int) -> str:
    rows = f"row {first:,}" if first == last else f"rows {first:,} to {last:,}"
    return f"[left out: {rows}, which the file hides]"


def hidden_columns(first: str, last: str) -> str:
    columns = f"column {first}" if first == last else f"columns {first} to {last}"
    return f"[left out: {columns}, which the file hides]"


def hidden_slide(number: int) -> str:
    return f"[left out: slide {number:,}, which the file hides]"


def slide_heading(number: int, title: str) -> str:
    return f"## Slide {number:,}: {title}" if title else f"## Slide {number:,}"


def slide_notes(text: str) -> str:
    return f"Notes: {text}"


def chart(title: str) -> str:
    return f"Chart: {title}" if title else "Chart"


def chart_axes(titles: list[str]) -> str:
    return f"Axes: {', '.join(titles)}"


def empty_rows(first: int, last: int) -> str:
    return f"[rows {first:,} to {last:,} are empty]"


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
