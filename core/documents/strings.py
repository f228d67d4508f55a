"""User-visible texts of reading documents: refusals, hints, and marks of omitted parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.documents.limits import Kind
from core.events import LeftOut

KIND_PICTURE = ("a picture", "Pictures cannot be attached; paste the words it shows.")
KIND_ARCHIVE = ("an archive", "Unpack it and attach the texts inside.")
KIND_SOUND = ("a sound", "Only texts can be attached.")
KIND_PROGRAM = ("a program", "Only texts can be attached.")
KIND_OUTLOOK = ("an Outlook message", "Save it as .eml, HTML or text.")
KIND_OLD_OFFICE = ("an old Word or PowerPoint file", "Save it as .docx or .pptx, or as plain text.")
KIND_OPEN_DOCUMENT = ("a document of another program", "Save it as PDF or as an Office file.")
KIND_BINARY = (
    "not a text",
    "Text, code, HTML, PDF, Office, OpenDocument, rich text and mail files can be attached.",
)
CONVERT_IMAGE = "Save it as PNG or JPEG and attach that."
SCALE_IMAGE = "Save a smaller copy and attach that."
ATTACH_AGAIN = "Attach it again."
PASTE_PART = "Paste the part that matters."
CHECK_FILE = "Check the file."
ATTACH_FILES = "Choose a file or a folder."
EMPTY_HINT = "Choose another file, or paste the text."
SCAN_HINT = "Attach it to a question to a model that sees images, choose another file, or paste the text."
UNLOCK = "Save a copy without the password and attach that."
SAVE_AGAIN = "Open it in Word and save it again."
ENDED_BY_SIGNAL = "its reader was ended by {signal}"
ENDED_WITH = "its reader ended with status {status}"
NOT_STARTED = "its reader could not be started ({why})"

PAGE_MISSING = "the file has no such page"
PAGE_DAMAGED = "the page is damaged"
PAGE_TOO_SLOW = "drawing it takes too long"


# Why something in a folder is left out.
IS_LINK = "a link to something else"
IS_HIDDEN = "hidden"
OF_PROGRAMS = "a folder with generated files"
TOO_DEEP = "too many folders inside each other"
NO_FILE = "not a file"


def folder_unreadable(name: str, why: str) -> str:
    return f"The folder “{name}” cannot be read: {why}."


def folder_full(most_files: int) -> str:
    return f"more than {most_files:,} files"


def folder_too_large(most_entries: int) -> str:
    return f"the folder has more than {most_entries:,} files and folders"


def guessed_encoding(name: str, encoding: str, others: Sequence[str]) -> str:
    return f"{name}: read as {encoding}, which is a guess; it may be {' or '.join(others)}."


def file_is(name: str, what: str) -> str:
    return f"“{name}” is {what}."


def not_a_file(name: str) -> str:
    return f"“{name}” is not a file."


def file_size(name: str, size_bytes: int, most_bytes: int) -> str:
    return f"“{name}” has {_megabytes(size_bytes)}; the limit is {_megabytes(most_bytes)}."


def file_needs_memory(name: str, most_bytes: int) -> str:
    return f"“{name}” takes more than {_megabytes(most_bytes)} of memory to read."


def aborted(most_bytes: int) -> str:
    return f"its reader was aborted, usually because it needs more than {_megabytes(most_bytes)} of memory"


def file_takes_long(name: str, seconds: float) -> str:
    return f"“{name}” could not be read in {seconds:,.0f} s."


def file_stands_still(name: str, seconds: float) -> str:
    return f"“{name}” cannot be read: no progress for {seconds:,.0f} s."


def file_too_long(name: str, most_characters: int) -> str:
    return f"“{name}” holds more than {most_characters:,} characters."


def file_unpacks_to(name: str, size_bytes: int, most_bytes: int) -> str:
    return f"“{name}” unpacks to {_megabytes(size_bytes)}; the limit is {_megabytes(most_bytes)}."


def file_unreadable(name: str, why: str) -> str:
    return f"“{name}” cannot be read: {why}."


def file_empty(name: str) -> str:
    return f"“{name}” holds no text."


def file_scanned(name: str) -> str:
    return f"“{name}” holds no text: this PDF has no text layer, only pictures of pages."


def file_locked(name: str) -> str:
    return f"“{name}” is locked with a password."


def image_is_svg(name: str) -> str:
    return f"“{name}” is an SVG drawing, which is not supported as an image."


def image_is_heic(name: str) -> str:
    return f"“{name}” is a HEIC image, which can be read on a Mac only."


def image_is_float(name: str) -> str:
    return f"“{name}” has fractional pixel values, as measurements do."


def image_pixels(name: str, width: int, height: int, most: int) -> str:
    return f"“{name}” has {width:,} × {height:,} pixels; the limit is {most / 1e6:,.0f} million."


def image_aspect(name: str, width: int, height: int, most: int) -> str:
    return f"“{name}” has {width:,} × {height:,} pixels; a side is at most {most:,} times the other."


def image_changed(name: str) -> str:
    return f"The image “{name}” has changed since it was attached."


def file_damaged(name: str, kind: str) -> str:
    return f"“{name}” is damaged, or not a valid {kind} file."


def file_encoded(name: str, encoding: str) -> str:
    return f"The text of “{name}” is in an encoding that Word does not use ({encoding})."


# Parts that a text leaves out, marks or guesses, in the order of their weight.
_LEFT_OUT: dict[Kind, tuple[str, str]] = {
    "scanned page": ("scanned page", "scanned pages"), "missing page": ("missing page", "missing pages"),
    "unreadable page": ("unreadable page", "unreadable pages"),
    "hidden sheet": ("hidden sheet", "hidden sheets"), "hidden slide": ("hidden slide", "hidden slides"),
    "hidden row": ("hidden row", "hidden rows"), "hidden column": ("hidden column", "hidden columns"),
    "hidden cell": ("hidden cell", "hidden cells"),
    "hidden word": ("hidden word", "hidden words"), "attachment": ("attachment", "attachments"),
    "later frame": ("later frame", "later frames"),
    "equation": ("equation", "equations"), "object": ("embedded object", "embedded objects"),
    "picture": ("picture", "pictures"), "deleted word": ("deleted word", "deleted words"),
    "damaged character": ("damaged character", "damaged characters"),
}  # fmt: skip
# In a short line, and places of one kind in a long one.
_MOST_KINDS, _MOST_PLACES = 2, 5
# Most ranges of page numbers in a line.
_MOST_RUNS = 20


def left_out(parts: Sequence[LeftOut]) -> str:
    """“2 hidden rows, 1 scanned page”; the weightiest kinds only."""
    kinds = [_counted(kind, of_kind) for kind, of_kind in _by_kind(parts)]
    return ", ".join([*kinds[:_MOST_KINDS], "…"] if len(kinds) > _MOST_KINDS else kinds)


def left_out_in_full(parts: Sequence[LeftOut]) -> str:
    """“Not in the text: 2 hidden rows (Sales, row 3), 1 scanned page (page 2)”; empty if it is all there."""
    kinds: list[str] = []
    for kind, of_kind in _by_kind(parts):
        places = [part.place for part in of_kind if part.place]
        shown = "; ".join([*places[:_MOST_PLACES], "…"] if len(places) > _MOST_PLACES else places)
        kinds.append(f"{_counted(kind, of_kind)} ({shown})" if shown else _counted(kind, of_kind))
    return f"Not in the text: {', '.join(kinds)}" if kinds else ""


def _by_kind(parts: Sequence[LeftOut]) -> list[tuple[Kind, list[LeftOut]]]:
    found = ((kind, [part for part in parts if part.kind == kind]) for kind in _LEFT_OUT)
    return [(kind, of_kind) for kind, of_kind in found if of_kind]


def _counted(kind: Kind, parts: Sequence[LeftOut]) -> str:
    count = sum(part.count for part in parts)
    return f"{count:,} {_LEFT_OUT[kind][count != 1]}"


def page_place(number: int) -> str:
    return f"page {number:,}"


def rows(first: int, last: int) -> str:
    return f"row {first:,}" if first == last else f"rows {first:,} to {last:,}"


def columns(first: str, last: str) -> str:
    return f"column {first}" if first == last else f"columns {first} to {last}"


def cells(count: int, addresses: str) -> str:
    return f"{'cell' if count == 1 else 'cells'} {addresses}"


def hidden_text(words: int) -> str:
    """The last line of a text whose file has text that its own program does not show."""
    return f"[left out: {words:,} {'word' if words == 1 else 'words'} that the file hides]"


def attachment_left_out(name: str) -> str:
    return f"[left out: the attachment “{name}”]"


def hidden_sheet(name: str) -> str:
    return f"[left out: the sheet “{name}”, which the file hides]"


def hidden(part: str) -> str:
    return f"[left out: {part}, which the file hides]"


# As the next two write it.
PAGE_MARK = re.compile(r"\[page ([\d,]+) (?:has no|cannot be read as) text[^][\n]{0,40}\]")


def scanned_page(number: int, *, has_text: bool) -> str:
    rest = " but the lines above" if has_text else ""
    return f"[page {number:,} has no text{rest}: it is a picture]"


def unreadable_page(number: int) -> str:
    return f"[page {number:,} cannot be read as text: its font gives no letters]"


def file_without_letters(name: str) -> str:
    return f"“{name}” cannot be read as text: its fonts give no letters."


def comment(text: str) -> str:
    return f"[comment: {text}]"


def page_image(name: str, number: int) -> str:
    """The name of a page as an image."""
    return f"{name}, {page_place(number)}"


def page_undrawn(name: str, number: int, why: str) -> str:
    return f"Page {number:,} of “{name}” cannot be shown to the model: {why}."


def page_needs_memory(most_bytes: int) -> str:
    return f"drawing it takes more than {_megabytes(most_bytes)} of memory"


def pdf_changed(name: str) -> str:
    return f"“{name}” has changed since it was attached."


def pages(numbers: Sequence[int]) -> str:
    """“pages 3, 5 to 9”: ascending numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{first:,}" if first == last else f"{first:,} to {last:,}" for first, last in runs]
    more = len(shown) - _MOST_RUNS
    words = ", ".join([*shown[:_MOST_RUNS], f"and {more:,} more ranges"] if more > 0 else shown)
    return f"{'page' if len(numbers) == 1 else 'pages'} {words}"


def pages_read(name: str, numbers: Sequence[int]) -> str:
    return f"{name}: reading {pages(numbers)} as {'an image' if len(numbers) == 1 else 'images'}"


def missing_page(name: str) -> str:
    return f"[left out: the page “{name}”, which is missing or damaged]"


def slide_place(number: int) -> str:
    return f"slide {number:,}"


def hidden_slide(number: int) -> str:
    return f"[left out: slide {number:,}, which the file hides]"


def slide_heading(number: int, title: str) -> str:
    return f"## Slide {number:,}: {title}" if title else f"## Slide {number:,}"


def slide_background(text: str) -> str:
    return f"[slide background] {text}"


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
