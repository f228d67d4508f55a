"""OpenDocument texts and presentations (.odt, .odp, and flat .fodt, .fodp) to text.

Headings have `#` marks and their numbers, items `-` or their number. Footnotes and comments are numbered
and follow the text, as do page headers and footers. Each page of a presentation is a heading such as
`## Slide 2`, with its notes. Embedded formulas, charts and tables are read, form fields show their state;
pictures are marked. Deleted text is left out; hidden text and slides are left out and counted.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Sequence
from typing import IO, NamedTuple

from core.documents import strings
from core.documents.equations import MathReader
from core.documents.limits import Gathered, LockedError, Told
from core.documents.numerals import figure, kind_of
from core.documents.parts import MOST_XML_BYTES, Elements, opened, parse_part, read_part
from core.documents.writer import PLAIN, Marks, Writer

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, STYLE, DRAW, _PRESENTATION, _FORM, _SVG = (
    f"{_NAMESPACE}{each} "
    for each in (
        *("text:1.0", "table:1.0", "style:1.0", "drawing:1.0", "presentation:1.0", "form:1.0"),
        "svg-compatible:1.0",
    )
)
OFFICE = f"{_NAMESPACE}office:1.0 "
HREF = "http://www.w3.org/1999/xlink href"
_MATH = "http://www.w3.org/1998/Math/MathML "
_CREATOR = "http://purl.org/dc/elements/1.1/ creator"
CONTENT, _STYLES, _MANIFEST = "content.xml", "styles.xml", "META-INF/manifest.xml"
_MOST_STYLES_BYTES = 16 * 1024 * 1024
_LEFT_OUT = frozenset(
    (
        *(TEXT + "tracked-changes", OFFICE + "forms", _PRESENTATION + "settings"),
        *(TEXT + "table-of-content-source", OFFICE + "scripts", _PRESENTATION + "footer-decl"),
        *(_PRESENTATION + "date-time-decl", OFFICE + "styles", OFFICE + "automatic-styles", OFFICE + "meta"),
        *(OFFICE + "settings", OFFICE + "font-face-decls", OFFICE + "binary-data"),
        "http://purl.org/dc/elements/1.1/ date",
    )
)
_HEADERS = {STYLE + each: f"[page {each}]" for each in ("header", "footer")}
_MOST_REPEATS = 64
_MOST_AFFIX = 20
_DEEPEST = 8
_MOST_NESTED = 3
_SPACES = re.compile(r"[ \t\r\n]+")


def opendocument_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    with opened(stream) as archive:
        refuse_locked(archive)
        styles = read_styles(archive)
        writer = Writer(gathered)
        parse_part(archive, CONTENT, _Words(archive, writer, styles), MOST_XML_BYTES, told)
        said = writer.says
        if _STYLES in archive.NameToInfo:
            parse_part(archive, _STYLES, _Words(archive, writer, styles, headers=True), _MOST_STYLES_BYTES)
        text = writer.text()
    return text if said else ""


def read_styles(archive: zipfile.ZipFile, folder: str = "") -> Styles:
    """The styles of the document in `folder`. Raises as `parse_part` does."""
    styles = Styles()
    for part, most_bytes in ((_STYLES, _MOST_STYLES_BYTES), (CONTENT, MOST_XML_BYTES)):
        if folder + part in archive.NameToInfo:
            parse_part(archive, folder + part, styles, most_bytes)
    return styles


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


class Styles(Elements):
    """Reads styles and forms: how lists and headings are numbered, marks of text, states of form fields."""

    def __init__(self) -> None:
        # By the list's style; those of headings are under an empty name.
        self.levels: dict[str, dict[int, _Level]] = {}
        self.marks: dict[str, Marks] = {}
        self.hidden: set[str] = set()  # of pages and tables
        self.controls: dict[str, str] = {}
        self._style = self._list = self._control = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == STYLE + "style":
            self._style = attributes.get(STYLE + "name", "")
            self.marks[self._style] = self.marks.get(attributes.get(STYLE + "parent-style-name", ""), PLAIN)
        elif name == STYLE + "text-properties" and self._style:
            self.marks[self._style] = _marks(self.marks[self._style], attributes)
        elif name in (STYLE + "drawing-page-properties", STYLE + "table-properties"):
            if (
                attributes.get(_PRESENTATION + "visibility") == "hidden"
                or attributes.get(TABLE + "display") == "false"
            ):
                self.hidden.add(self._style)
        elif name == TEXT + "list-style":
            self._list = attributes.get(STYLE + "name", "")
        elif name in (TEXT + "list-level-style-number", TEXT + "outline-level-style"):
            if kind := kind_of(attributes.get(STYLE + "num-format", "")):
                of = self._list if name == TEXT + "list-level-style-number" else ""
                self.levels.setdefault(of, {})[whole(attributes.get(TEXT + "level", ""), 1)] = _Level(
                    kind,
                    attributes.get(STYLE + "num-prefix", "")[:_MOST_AFFIX],
                    attributes.get(STYLE + "num-suffix", "")[:_MOST_AFFIX],
                    whole(attributes.get(TEXT + "display-levels", ""), 1),
                    whole(attributes.get(TEXT + "start-value", ""), 1),
                )
        elif name.startswith(_FORM):
            self._start_form(name[len(_FORM) :], attributes)

    def _start_form(self, tag: str, attributes: dict[str, str]) -> None:
        identifier = next((value for name, value in attributes.items() if name.endswith(("id", " id"))), "")
        label = attributes.get(_FORM + "label", "")
        if tag in ("checkbox", "radio"):
            state = attributes.get(_FORM + "current-state", attributes.get(_FORM + "state", ""))
            is_on = state == "checked" or attributes.get(_FORM + "current-selected") == "true"
            self.controls[identifier] = f"[{'x' if is_on else ' '}] {label}".rstrip()
        elif tag in (
            "text",
            "textarea",
            "combobox",
            "formatted-text",
            "number",
            "date",
            "time",
            "password",
            "button",
        ):
            value = attributes.get(_FORM + "current-value", attributes.get(_FORM + "value", ""))
            self.controls[identifier] = "" if tag == "password" else label if tag == "button" else value
        elif tag == "listbox":
            self._control = identifier
        elif tag == "option" and attributes.get(_FORM + "current-selected") == "true":
            before = self.controls.get(self._control, "")
            self.controls[self._control] = f"{before} {label}".strip()

    def end(self, name: str) -> None:
        if name == STYLE + "style":
            self._style = ""

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


def _marks(of_parent: Marks, attributes: dict[str, str]) -> Marks:
    """The marks of a style's text."""
    script, struck, hidden = of_parent
    if position := attributes.get(STYLE + "text-position", ""):
        # `super 58%`, or how many percent the text is raised or lowered.
        amount = position.split()[0].rstrip("%")
        script = amount if amount in ("super", "sub") else "" if not amount.strip("-0.") else "super"
        script = "sub" if amount.startswith("-") and amount.strip("-0.") else script
    for attribute in ("text-line-through-style", "text-line-through-type"):
        struck = attributes.get(STYLE + attribute, "none" if not struck else "solid") != "none"
    display = attributes.get(TEXT + "display")
    return Marks(script, struck, display == "none" if display else hidden)


class _Words(Elements):
    """Takes the elements of `content.xml`, or of the page headers in `styles.xml`, and tells `writer`."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        writer: Writer,
        styles: Styles,
        folder: str = "",
        *,
        headers: bool = False,
        depth: int = 0,
    ) -> None:
        self._archive, self._writer, self._styles, self._folder = archive, writer, styles, folder
        self._depth = depth
        self._silent = headers
        self._left_out = 0
        self._marks: list[Marks] = [PLAIN]  # of the open paragraphs, spans and hidden parts
        self._open = 0  # paragraphs
        self._levels: list[int] = []  # of the open headings and paragraphs; 0 for paragraphs
        self._lists: list[str] = []  # styles of the open lists
        self._counts: list[int] = []  # numbers of their last items
        self._last_counts: dict[str, int] = {}  # where a list of a style may go on
        self._headings: list[int] = []  # numbers of the last headings, by level
        self._mark = ""
        self._repeats = 1
        self._ignored = 0  # open citations, names of authors and dates
        self._slide = 0
        self._page_notes = False
        self._frames: list[bool] = []  # whether each open frame has been read
        self._picture = self._description = ""
        self._math: MathReader | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._left_out or (name in _LEFT_OUT and not self._silent):
            self._left_out += 1
            return
        if name in _HEADERS:
            self._silent = False
            self._writer.open_note(_HEADERS[name])
        if self._silent:
            return
        if name.startswith(_MATH):
            self._start_math(name[len(_MATH) :])
        elif name.startswith(TEXT):
            self._start_text(name[len(TEXT) :], attributes)
        elif name.startswith(TABLE):
            self._start_table(name[len(TABLE) :], attributes)
        elif name.startswith(DRAW):
            self._start_drawn(name[len(DRAW) :], attributes)
        elif name == OFFICE + "annotation":
            label = self._writer.refer("comments")
            self._writer.words(label)
            self._writer.open_note(label)
        elif name == _CREATOR:
            self._ignored += 1
        elif name in (_SVG + "title", _SVG + "desc"):
            self._description = ""
        elif name == _PRESENTATION + "notes":
            self._page_notes = True

    def _start_math(self, tag: str) -> None:
        if self._math is not None:
            self._math.start(tag, "")
        elif tag == "math":
            self._math = MathReader()

    def _start_text(self, tag: str, attributes: dict[str, str]) -> None:
        writer = self._writer
        marks = self._styles.marks.get(attributes.get(TEXT + "style-name", ""), self._marks[-1])
        hidden = (
            self._marks[-1].hidden
            or marks.hidden
            or (tag in ("hidden-text", "hidden-paragraph") and attributes.get(TEXT + "is-hidden") == "true")
            or (tag == "section" and attributes.get(TEXT + "display") == "none")
        )
        match tag:
            case "p" | "h":
                level = 0
                writer.open_paragraph()
                self._open += 1
                if tag == "h":
                    level = min(whole(attributes.get(TEXT + "outline-level", ""), 1), _DEEPEST) or 1
                    if attributes.get(TEXT + "is-list-header") != "true" and not hidden:
                        self._number_heading(level)
                self._levels.append(level)
            case "s":
                writer.words(" " * min(whole(attributes.get(TEXT + "c", ""), 1), 1_000), self._marks[-1])
            case "tab":
                writer.words("\t", self._marks[-1])
            case "line-break":
                writer.words("\n", self._marks[-1])
            case "list":
                self._open_list(attributes)
            case "list-item" if self._lists:
                self._counts[-1] = whole(attributes.get(TEXT + "start-value", ""), self._counts[-1] + 1)
                self._mark = (self._styles.number(self._lists[-1], self._counts) or "-") + " "
            case "note":
                label = writer.refer("notes")
                writer.words(label)
                writer.open_note(label)
            case "note-citation":
                self._ignored += 1
            case "ruby-text":
                writer.words("(", self._marks[-1])
            case "a":
                writer.open_link(attributes.get(HREF, ""))
        if tag in ("p", "h", "span", "section", "hidden-text", "hidden-paragraph"):
            self._marks.append(marks._replace(hidden=hidden))

    def _open_list(self, attributes: dict[str, str]) -> None:
        style = attributes.get(TEXT + "style-name", "") or (self._lists[-1] if self._lists else "-")
        self._lists.append(style)
        goes_on = (
            attributes.get(TEXT + "continue-numbering") == "true" or TEXT + "continue-list" in attributes
        )
        first = self._styles.first(style, len(self._lists)) - 1
        self._counts.append(self._last_counts.get(style, first) if goes_on else first)

    def _start_table(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "table":
            self._writer.open_table()
        elif tag == "table-row":
            self._writer.open_row()
        elif tag in ("table-cell", "covered-table-cell"):
            repeated = attributes.get(TABLE + "number-columns-repeated", "")
            self._repeats = min(whole(repeated, 1), _MOST_REPEATS)
            self._writer.open_cell()

    def _start_drawn(self, tag: str, attributes: dict[str, str]) -> None:
        match tag:
            case "page":
                self._slide += 1
                is_hidden = attributes.get(DRAW + "style-name") in self._styles.hidden
                if is_hidden:
                    self._writer.gathered.leave_out("hidden slide", place=str(self._slide))
                    self._left_out = 1
                hidden = strings.hidden_slide(self._slide)
                self._writer.words(hidden if is_hidden else strings.slide_heading(self._slide, ""))
                self._writer.close_paragraph("heading")
            case "frame":
                self._frames.append(False)
                self._picture = self._description = ""
            case "object" | "object-ole":
                self._read_object(attributes.get(HREF, ""))
            case "text-box" | "page-thumbnail" if self._frames:
                self._frames[-1] = True
            case "image" if self._frames and not self._frames[-1]:
                self._frames[-1], self._picture = True, "picture"
            case "control":
                self._writer.words(self._styles.controls.get(attributes.get(DRAW + "control", ""), ""))

    def _read_object(self, href: str) -> None:
        """An embedded formula, chart or table."""
        folder = posixpath.normpath(posixpath.join(self._folder, href)) + "/"
        if self._frames:
            self._frames[-1] = True
        if not href:  # a flat file has it inside
            return
        if folder + CONTENT in self._archive.NameToInfo and self._depth < _MOST_NESTED:
            words = _Words(
                self._archive, self._writer, read_styles(self._archive, folder), folder, depth=self._depth + 1
            )
            parse_part(self._archive, folder + CONTENT, words, MOST_XML_BYTES)
        else:
            self._writer.mark("object")

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
            return
        if self._silent:
            return
        writer = self._writer
        if name in _HEADERS:
            writer.close_note()
            self._silent = True
        elif name.startswith(_MATH):
            if self._math is not None and self._math.end():
                line, self._math = self._math.line(), None
                writer.words(line)
        elif name.startswith(TEXT):
            self._end_text(name[len(TEXT) :])
        elif name == OFFICE + "annotation":
            writer.close_note()
        elif name == _CREATOR:
            self._ignored -= 1
        elif name in (TABLE + "table-cell", TABLE + "covered-table-cell"):
            writer.close_cell(self._repeats)
        elif name == TABLE + "table":
            writer.close_table()
        elif name == DRAW + "frame" and self._frames:
            self._frames.pop()
            if self._picture:
                writer.mark("picture", self._description)
                self._picture = ""
                if not self._open:
                    writer.close_paragraph("paragraph")
        elif name == _PRESENTATION + "notes":
            self._page_notes = False

    def _end_text(self, tag: str) -> None:
        writer = self._writer
        if tag in ("p", "h") and self._levels:
            self._open -= 1
            self._paragraph(self._levels.pop())
        elif tag == "list" and self._lists:
            self._last_counts[self._lists.pop()] = self._counts.pop()
            if not self._lists:
                writer.apart()
        elif tag == "list-item":
            self._mark = ""
        elif tag == "note-citation":
            self._ignored -= 1
        elif tag == "note":
            writer.close_note()
        elif tag == "ruby-text":
            writer.words(")", self._marks[-1])
        elif tag == "a":
            writer.close_link()
        if tag in ("p", "h", "span", "section", "hidden-text", "hidden-paragraph") and len(self._marks) > 1:
            self._marks.pop()

    def characters(self, text: str) -> None:
        if self._left_out or self._silent or self._ignored:
            return
        if self._math is not None:
            self._math.characters(text)
        elif self._open:
            self._writer.words(_SPACES.sub(" ", text), self._marks[-1])  # `text:s` has the spaces that count
        elif self._picture:
            self._description += text

    def _number_heading(self, level: int) -> None:
        """Begin a heading with its number, if the document's headings have one."""
        counts = self._headings[:level]
        counts += [self._styles.first("", each) - 1 for each in range(len(counts) + 1, level + 1)]
        counts[-1] += 1
        self._headings = counts
        if number := self._styles.number("", counts):
            self._writer.words(f"{number} ")

    def _paragraph(self, level: int) -> None:
        writer = self._writer
        if self._lists:
            mark = self._mark or "  "
            said = writer.close_paragraph("item", mark, len(self._lists) - 1)
            self._mark = "" if said else self._mark
        elif self._page_notes:
            writer.close_paragraph("paragraph", strings.slide_notes(""))
        elif level and not writer.in_cell:
            writer.close_paragraph("heading", f"{'#' * min(level, 6)} ")
        else:
            writer.close_paragraph("paragraph")


def whole(value: str, otherwise: int) -> int:
    """The number that `value` writes in at most seven ASCII digits, else `otherwise`."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 8 else otherwise
