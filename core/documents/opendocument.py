"""OpenDocument texts and presentations (.odt, .odp) to text.

Headings have `#` marks and their numbers, items `-` or their number; rows of tables are lines with tabs
between cells. Footnotes are numbered `[1]` and follow the text. Each page of a presentation is a heading such
as `## Slide 2`, with its notes. Deleted text, comments, pictures and formulas are left out; hidden text is
left out and counted in a last line.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from typing import IO, NamedTuple

from core.documents import strings
from core.documents.docx_lists import figure
from core.documents.limits import DamagedError, Gathered, LockedError, Told, UnreadableError
from core.documents.parts import Package, parse_part, read_part

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, STYLE, _DRAW, _PRESENTATION, _FO = (
    f"{_NAMESPACE}{each} "
    for each in (
        "text:1.0",
        "table:1.0",
        "style:1.0",
        "drawing:1.0",
        "presentation:1.0",
        "xsl-fo-compatible:1.0",
    )
)
OFFICE = f"{_NAMESPACE}office:1.0 "
CONTENT, _STYLES, _MANIFEST = "content.xml", "styles.xml", "META-INF/manifest.xml"
MOST_XML_BYTES = 256 * 1024 * 1024
_MOST_STYLES_BYTES = 16 * 1024 * 1024
_LEFT_OUT = frozenset(
    (
        *(OFFICE + "annotation", TEXT + "tracked-changes", TEXT + "ruby-text", OFFICE + "forms"),
        *(_DRAW + "object", _PRESENTATION + "settings", TEXT + "table-of-content-source"),
        *(OFFICE + "scripts", _PRESENTATION + "footer-decl", _PRESENTATION + "date-time-decl"),
    )
)
_MOST_REPEATS = 64
_MOST_AFFIX = 20
_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_DEEPEST = 8
_INDENT = "    "
_SPACES = re.compile(r"[ \t\r\n]+")


def opendocument_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    try:
        with Package(stream) as archive:
            refuse_locked(archive)
            styles = _Styles()
            for part, most_bytes in ((_STYLES, _MOST_STYLES_BYTES), (CONTENT, MOST_XML_BYTES)):
                if part in archive.NameToInfo:
                    parse_part(archive, part, styles, most_bytes)
            words = _Words(gathered, styles)
            parse_part(archive, CONTENT, words, MOST_XML_BYTES, told)
            words.end_text()
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise DamagedError from error
    return gathered.text().strip("\n") if words.says else ""


def refuse_locked(archive: zipfile.ZipFile) -> None:
    """Raises `LockedError` for an encrypted document."""
    has_manifest = _MANIFEST in archive.NameToInfo
    if has_manifest and b"encryption-data" in read_part(archive, _MANIFEST, _MOST_STYLES_BYTES):
        raise LockedError


class _Level(NamedTuple):
    """How the items of a list's level, or headings, are numbered; `shown` levels make one number."""

    kind: str
    prefix: str
    suffix: str
    shown: int
    first: int


class _Styles:
    """Reads styles: how lists and headings are numbered, and which styles hide text."""

    def __init__(self) -> None:
        # By the list's style; those of headings are under an empty name.
        self.levels: dict[str, dict[int, _Level]] = {}
        self.hiding: set[str] = set()
        self._style = self._list = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == STYLE + "style":
            self._style = attributes.get(STYLE + "name", "")
            if attributes.get(STYLE + "parent-style-name") in self.hiding:
                self.hiding.add(self._style)
        elif name == STYLE + "text-properties":
            if attributes.get(TEXT + "display") == "none":
                self.hiding.add(self._style)
        elif name == TEXT + "list-style":
            self._list = attributes.get(STYLE + "name", "")
        elif name in (TEXT + "list-level-style-number", TEXT + "outline-level-style"):
            kind = _FORMATS.get(attributes.get(STYLE + "num-format", ""))
            if kind:
                of = self._list if name == TEXT + "list-level-style-number" else ""
                self.levels.setdefault(of, {})[whole(attributes.get(TEXT + "level", ""), 1)] = _Level(
                    kind,
                    attributes.get(STYLE + "num-prefix", "")[:_MOST_AFFIX],
                    attributes.get(STYLE + "num-suffix", "")[:_MOST_AFFIX],
                    whole(attributes.get(TEXT + "display-levels", ""), 1),
                    whole(attributes.get(TEXT + "start-value", ""), 1),
                )

    def end(self, name: str) -> None:
        if name == STYLE + "style":
            self._style = ""

    def characters(self, text: str) -> None:
        """Styles hold no text."""

    def first(self, style: str, level: int) -> int:
        """The number of the first item of a level."""
        found = self.levels.get(style, {}).get(level)
        return found.first if found else 1

    def number(self, style: str, counts: Sequence[int]) -> str:
        """The number of an item whose level is the last of `counts`; empty if its level has none."""
        levels = self.levels.get(style, {})
        level = levels.get(len(counts))
        if level is None:
            return ""
        shown = range(max(1, len(counts) - level.shown + 1), len(counts) + 1)
        parts = (figure(counts[each - 1], levels[each].kind) for each in shown if each in levels)
        return f"{level.prefix}{'.'.join(parts)}{level.suffix}".strip()


class _Words:
    """Takes the elements of `content.xml` and writes to `gathered`."""

    def __init__(self, gathered: Gathered, styles: _Styles) -> None:
        self.says = False
        self._gathered = gathered
        self._styles = styles
        self._left_out = 0
        self._hidden = 0  # open elements with a style that hides, and those inside of the first
        self._hidden_words = 0
        # The innermost last: a note or a frame is inside a paragraph and contains paragraphs.
        self._open: list[list[str]] = []
        self._levels: list[int] = []  # of the open headings and paragraphs; 0 for paragraphs
        self._lists: list[str] = []  # styles of the open lists
        self._counts: list[int] = []  # numbers of their last items
        self._last_counts: dict[str, int] = {}  # where a list of a style may go on
        self._headings: list[int] = []  # numbers of the last headings, by level
        self._mark = ""
        self._rows: list[list[str]] = []  # cells of the open rows
        self._cells: list[list[str]] = []  # paragraphs of the open cells
        self._repeats: list[int] = []
        self._notes: list[str] = []
        self._in_note: list[list[str]] = []  # paragraphs of the open note
        self._citation = False
        self._slide = 0
        self._page_notes = False

    def end_text(self) -> None:
        """The notes, and how much was hidden."""
        for number, note in enumerate(self._notes, 1):
            self._gathered.add(f"\n[{number}] {note}\n")
        if self._hidden_words:
            self._gathered.add(f"\n{strings.hidden_text(self._hidden_words)}\n")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._left_out or name in _LEFT_OUT:
            self._left_out += 1
            return
        if (
            self._hidden
            or attributes.get(TEXT + "style-name") in self._styles.hiding
            or _is_hidden(name, attributes)
        ):
            self._hidden += 1
            return
        if name in (TEXT + "p", TEXT + "h"):
            self._open.append([])
            level = 0
            if name == TEXT + "h":
                level = min(whole(attributes.get(TEXT + "outline-level", ""), 1), _DEEPEST) or 1
                if attributes.get(TEXT + "is-list-header") != "true":
                    self._number_heading(level)
            self._levels.append(level)
        elif name == TEXT + "s":
            self._add(" " * min(whole(attributes.get(TEXT + "c", ""), 1), 1_000))
        elif name == TEXT + "tab":
            self._add("\t")
        elif name == TEXT + "line-break":
            self._add("\n")
        elif name == TEXT + "list":
            style = attributes.get(TEXT + "style-name", "") or (self._lists[-1] if self._lists else "-")
            self._lists.append(style)
            goes_on = (
                attributes.get(TEXT + "continue-numbering") == "true" or TEXT + "continue-list" in attributes
            )
            first = self._styles.first(style, len(self._lists)) - 1
            self._counts.append(self._last_counts.get(style, first) if goes_on else first)
        elif name == TEXT + "list-item" and self._lists:
            self._counts[-1] = whole(attributes.get(TEXT + "start-value", ""), self._counts[-1] + 1)
            self._mark = (self._styles.number(self._lists[-1], self._counts) or "-") + " "
        elif name == TABLE + "table-row":
            self._rows.append([])
        elif name in (TABLE + "table-cell", TABLE + "covered-table-cell"):
            self._cells.append([])
            repeated = attributes.get(TABLE + "number-columns-repeated", "")
            self._repeats.append(min(whole(repeated, 1), _MOST_REPEATS))
        elif name == TEXT + "note":
            self._in_note.append([])
        elif name == TEXT + "note-citation":
            self._citation = True
        elif name == _DRAW + "page":
            self._slide += 1
            self._write(f"\n{strings.slide_heading(self._slide, '')}\n\n")
        elif name == _PRESENTATION + "notes":
            self._page_notes = True

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
            return
        if self._hidden:
            self._hidden -= 1
            return
        if name in (TEXT + "p", TEXT + "h") and self._open:
            self._paragraph("".join(self._open.pop()), self._levels.pop())
        elif name == TEXT + "list" and self._lists:
            self._last_counts[self._lists.pop()] = self._counts.pop()
            if not self._lists:
                self._write("\n")
        elif name == TEXT + "list-item":
            self._mark = ""
        elif name in (TABLE + "table-cell", TABLE + "covered-table-cell") and self._cells:
            text = " ".join(" ".join(self._cells.pop()).split())
            repeats = self._repeats.pop()
            if self._rows:
                self._rows[-1] += [text] * repeats
        elif name == TABLE + "table-row" and self._rows:
            row = "\t".join(self._rows.pop()).rstrip("\t")
            if self._cells:  # a table in a cell
                self._cells[-1].append(row)
            elif row:
                self._write(f"{row}\n")
        elif name == TABLE + "table" and not self._cells:
            self._write("\n")
        elif name == TEXT + "note-citation":
            self._citation = False
        elif name == TEXT + "note" and self._in_note:
            self._notes.append(" ".join(" ".join(self._in_note.pop()).split()))
            self._add(f"[{len(self._notes)}]")
        elif name == _PRESENTATION + "notes":
            self._page_notes = False

    def characters(self, text: str) -> None:
        if self._left_out or self._citation:
            return
        if self._hidden:
            self._hidden_words += len(text.split())
        elif self._open:
            self._add(_SPACES.sub(" ", text))  # `text:s` has the spaces that count

    def _number_heading(self, level: int) -> None:
        """Begin a heading with its number, if the document's headings have one."""
        counts = self._headings[:level]
        counts += [self._styles.first("", each) - 1 for each in range(len(counts) + 1, level + 1)]
        counts[-1] += 1
        self._headings = counts
        if number := self._styles.number("", counts):
            self._add(f"{number} ")

    def _add(self, text: str) -> None:
        if self._open:
            self._open[-1].append(text)

    def _paragraph(self, text: str, level: int) -> None:
        text = text.strip()
        if self._in_note:
            self._in_note[-1].append(text)
        elif self._cells:
            self._cells[-1].append(text)
        elif not text:
            self._write("\n")
        elif self._lists:
            indent = _INDENT * min(len(self._lists) - 1, _DEEPEST)
            mark = self._mark or "  "
            lines = text.replace("\n", f"\n{indent}{' ' * len(mark)}")
            self._write(f"{indent}{mark}{lines}\n")
            self._mark = ""
        elif self._page_notes:
            self._write(f"{strings.slide_notes(text)}\n\n")
        else:
            self._write(f"{'#' * min(level, 6)} {text}\n\n" if level else f"{text}\n\n")
        self.says = self.says or bool(text)

    def _write(self, text: str) -> None:
        self._gathered.add(text)


def _is_hidden(name: str, attributes: dict[str, str]) -> bool:
    """Whether an element is hidden text, or a hidden paragraph or section."""
    if name in (TEXT + "hidden-text", TEXT + "hidden-paragraph"):
        return attributes.get(TEXT + "is-hidden") == "true"
    return name == TEXT + "section" and attributes.get(TEXT + "display") == "none"


def whole(value: str, otherwise: int) -> int:
    """The number that `value` writes in at most seven ASCII digits, else `otherwise`."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 8 else otherwise
