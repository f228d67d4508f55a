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
from typing import IO, ClassVar, NamedTuple

from core.documents import strings
from core.documents.equations import equation_line
from core.documents.limits import Gathered, LockedError, Told
from core.documents.numerals import figure, kind_of
from core.documents.parts import MOST_TREE_BYTES, Element, Walker, opened, read_elements, read_part, whole
from core.documents.writer import PLAIN, Marks, Writer

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, STYLE, DRAW, _PRESENTATION, _FORM = (
    f"{_NAMESPACE}{each}:1.0 " for each in ("text", "table", "style", "drawing", "presentation", "form")
)
OFFICE = f"{_NAMESPACE}office:1.0 "
HREF = "http://www.w3.org/1999/xlink href"
_MATH = "http://www.w3.org/1998/Math/MathML "
CONTENT, _STYLES, _MANIFEST = "content.xml", "styles.xml", "META-INF/manifest.xml"
_HEADERS = ("header", "footer")
_PIECES = frozenset(
    ("p", "h", "list", "table", "section", "page", "frame", "math", "tracked-changes", "forms", *_HEADERS)
)
_STYLE_PIECES = frozenset(("style", "list-style", "outline-style", "forms"))
# Elements that format their text themselves.
_MARKED = ("p", "h", "span", "section", "hidden-text", "hidden-paragraph")
_READ_IN_FRAMES = ("object", "object-ole", "text-box", "page-thumbnail")
_FIELDS = frozenset(("text", "textarea", "combobox", "formatted-text", "number", "date", "time"))
_MOST_AFFIX = 20
_DEEPEST = 8
_MOST_PARENTS = 20  # of a style
_MOST_NESTED = 3
_SPACES = re.compile(r"[ \t\r\n]+")
_NONE = re.compile(r"0+(?:\.0*)?(?:[a-z]{2})?")  # a length of zero


def opendocument_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    with opened(stream) as archive:
        refuse_locked(archive)
        writer = Writer(gathered)
        words = _Words(archive, writer, Styles(archive))
        for element in read_elements(archive, CONTENT, _PIECES, told=told):
            words.visit(element)
        said = writer.says
        if _STYLES in archive.NameToInfo:
            for element in read_elements(archive, _STYLES, _HEADERS, MOST_TREE_BYTES):
                words.visit(element)
        text = writer.text()
    return text if said else ""


def refuse_locked(archive: zipfile.ZipFile) -> None:
    """Raises `LockedError` for an encrypted document."""
    has_manifest = _MANIFEST in archive.NameToInfo
    if has_manifest and b"encryption-data" in read_part(archive, _MANIFEST, MOST_TREE_BYTES):
        raise LockedError


class _Level(NamedTuple):
    """Numbering of a list level or of headings; a number shows `shown` levels."""

    kind: str
    prefix: str
    suffix: str
    shown: int
    first: int
    doubles: bool


class Styles:
    """Styles and forms of a document: numbers of lists and headings, marks of text, states of form fields."""

    def __init__(self, archive: zipfile.ZipFile, folder: str = "") -> None:
        """Reads the styles of the document in `folder`. Raises as `read_elements` does."""
        # By the list's style; those of headings are under an empty name.
        self.levels: dict[str, dict[int, _Level]] = {}
        self._texts: dict[str, tuple[str, Element]] = {}  # the parent and the properties of a style
        self._marks: dict[str, Marks] = {}
        self.hidden: set[str] = set()  # of pages and tables
        self.empty: set[str] = set()  # of rows without height and columns without width
        self.controls: dict[str, str] = {}
        for part in (folder + _STYLES, folder + CONTENT):
            if part in archive.NameToInfo:
                for element in read_elements(archive, part, _STYLE_PIECES):
                    self._read(element)

    def _read(self, element: Element) -> None:
        name = element.get(STYLE + "name")
        if element.tag == "forms":
            for each in element.all():
                self._read_control(each)
        elif element.tag == "style":
            parent = element.get(STYLE + "parent-style-name")
            self._texts[name] = parent, element.child("text-properties")
            pages, tables = element.child("drawing-page-properties"), element.child("table-properties")
            if (
                pages.get(_PRESENTATION + "visibility") == "hidden"
                or tables.get(TABLE + "display") == "false"
            ):
                self.hidden.add(name)
            height = element.child("table-row-properties").get(STYLE + "row-height")
            width = element.child("table-column-properties").get(STYLE + "column-width")
            if any(_NONE.fullmatch(each) for each in (height, width)):
                self.empty.add(name)
        else:
            levels = self.levels.setdefault(name if element.tag == "list-style" else "", {})
            for each in element.all("list-level-style-number", "outline-level-style"):
                if kind := kind_of(each.get(STYLE + "num-format")):
                    levels[whole(each.get(TEXT + "level"), 1)] = _Level(
                        kind,
                        each.get(STYLE + "num-prefix")[:_MOST_AFFIX],
                        each.get(STYLE + "num-suffix")[:_MOST_AFFIX],
                        whole(each.get(TEXT + "display-levels"), 1),
                        whole(each.get(TEXT + "start-value"), 1),
                        each.get(STYLE + "num-letter-sync") == "true",
                    )

    def _read_control(self, element: Element) -> None:
        identifier = next((value for name, value in element.attributes.items() if name.endswith("id")), "")
        label, tag = element.get(_FORM + "label"), element.tag
        if tag in ("checkbox", "radio"):
            state = element.get(_FORM + "current-state") or element.get(_FORM + "state")
            is_on = state == "checked" or element.get(_FORM + "current-selected") == "true"
            self.controls[identifier] = f"[{'x' if is_on else ' '}] {label}".rstrip()
        elif tag == "button":
            self.controls[identifier] = label
        elif tag == "listbox":
            chosen = (
                each for each in element.all("option") if each.get(_FORM + "current-selected") == "true"
            )
            self.controls[identifier] = " ".join(each.get(_FORM + "label") for each in chosen)
        elif tag in _FIELDS:
            value = element.get(_FORM + "value")
            self.controls[identifier] = element.get(_FORM + "current-value", value)

    def marks(self, style: str, otherwise: Marks) -> Marks:
        """The text marks of `style` and its parent styles; `otherwise` if the style is missing."""
        if style in self._texts and style not in self._marks:
            chain: list[Element] = []
            name = style
            while name in self._texts and len(chain) < _MOST_PARENTS:
                name, properties = self._texts[name]
                chain.append(properties)
            marks = PLAIN
            for properties in reversed(chain):
                marks = _marks(marks, properties)
            self._marks[style] = marks
        return self._marks.get(style, otherwise)

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
        parts = [
            figure(counts[at - 1], each.kind, doubles=each.doubles)
            for at in shown
            if (each := levels.get(at))
        ]
        return f"{level.prefix}{'.'.join(parts)}{level.suffix}".strip()


def _marks(of_parent: Marks, properties: Element) -> Marks:
    """The marks of a style's text."""
    script, struck, hidden = of_parent
    if position := properties.get(STYLE + "text-position").split():
        # `super 58%`, or how many percent the text is raised or lowered.
        amount = position[0].rstrip("%")
        script = amount if amount in ("super", "sub") else "" if not amount.strip("-0.") else "super"
        script = "sub" if amount.startswith("-") and amount.strip("-0.") else script
    for attribute in ("text-line-through-style", "text-line-through-type"):
        struck = properties.get(STYLE + attribute, "none" if not struck else "solid") != "none"
    display = properties.get(TEXT + "display")
    return Marks(script, struck, display == "none" if display else hidden)


class _Words(Walker):
    """Writes the content of `content.xml`, and page headers of `styles.xml`, to `writer`."""

    def __init__(
        self, archive: zipfile.ZipFile, writer: Writer, styles: Styles, folder: str = "", *, depth: int = 0
    ) -> None:
        super().__init__(writer)
        self._archive, self._styles, self._folder, self._depth = archive, styles, folder, depth
        self._in_paragraph = False
        self._lists: list[str] = []  # styles of the open lists
        self._counts: list[int] = []  # numbers of their last items
        self._last_counts: dict[str, int] = {}  # where a list of a style may go on
        self._headings: list[int] = []  # numbers of the last headings, by level
        self._mark = ""
        self._slide = 0
        self._page_notes = False

    def characters(self, text: str) -> None:
        if self._in_paragraph:
            self.say(_SPACES.sub(" ", text))  # `text:s` has the spaces that count

    def _apart(self, element: Element) -> None:
        """Handles an element that contains paragraphs and may be inside of a paragraph."""
        outer, self._in_paragraph = self._in_paragraph, False
        self.walk(element)
        self._in_paragraph = outer

    def marked(self, element: Element) -> None:
        outer, tag = self.marks, element.tag
        marks = self._styles.marks(element.get(TEXT + "style-name"), outer)
        is_hidden = tag.startswith("hidden-") and element.get(TEXT + "is-hidden") == "true"
        is_hidden = is_hidden or (tag == "section" and element.get(TEXT + "display") == "none")
        self.marks = marks._replace(hidden=outer.hidden or marks.hidden or is_hidden)
        if tag in ("p", "h"):
            self._paragraph(element)
        else:
            self.walk(element)
        self.marks = outer

    def _paragraph(self, element: Element) -> None:
        writer, level = self.writer, 0
        writer.open_paragraph()
        if element.tag == "h":
            level = min(whole(element.get(TEXT + "outline-level"), 1), _DEEPEST) or 1
            if element.get(TEXT + "is-list-header") != "true" and not self.marks.hidden:
                self._number_heading(level)
        outer, self._in_paragraph = self._in_paragraph, True
        self.walk(element)
        self._in_paragraph = outer
        if self._lists:
            said = writer.close_paragraph("item", self._mark or "  ", len(self._lists) - 1)
            self._mark = "" if said else self._mark
        elif self._page_notes:
            writer.close_paragraph("paragraph", strings.slide_notes(""))
        elif level and not writer.in_cell:
            writer.close_paragraph("heading", f"{'#' * min(level, 6)} ")
        else:
            writer.close_paragraph("paragraph")

    def _number_heading(self, level: int) -> None:
        """Begin a heading with its number, if the document's headings have one."""
        counts = self._headings[:level]
        counts += [self._styles.first("", each) - 1 for each in range(len(counts) + 1, level + 1)]
        counts[-1] += 1
        self._headings = counts
        if number := self._styles.number("", counts):
            self.writer.words(f"{number} ")

    def list(self, element: Element) -> None:
        style = element.get(TEXT + "style-name") or (self._lists[-1] if self._lists else "-")
        self._lists.append(style)
        goes_on = element.get(TEXT + "continue-numbering") == "true" or element.get(TEXT + "continue-list")
        first = self._styles.first(style, len(self._lists)) - 1
        self._counts.append(self._last_counts.get(style, first) if goes_on else first)
        self.walk(element)
        self._last_counts[self._lists.pop()] = self._counts.pop()
        if not self._lists:
            self.writer.apart()

    def item(self, element: Element) -> None:
        if self._lists:
            self._counts[-1] = whole(element.get(TEXT + "start-value"), self._counts[-1] + 1)
            self._mark = (self._styles.number(self._lists[-1], self._counts) or "-") + " "
        self.walk(element)
        self._mark = ""

    def note(self, element: Element) -> None:
        label = self.writer.refer("comments" if element.tag == "annotation" else "notes")
        self.writer.words(label)
        self.writer.open_note(label)
        self._apart(element)
        self.writer.close_note()

    def ruby_text(self, element: Element) -> None:
        self.say("(")
        self.walk(element)
        self.say(")")

    def link(self, element: Element) -> None:
        self.writer.open_link(element.get(HREF))
        self.walk(element)
        self.writer.close_link()

    def cell(self, element: Element) -> None:
        self.writer.open_cell(repeats=whole(element.get(TABLE + "number-columns-repeated"), 1))
        self._apart(element)
        self.writer.close_cell()

    def page(self, element: Element) -> None:
        self._slide += 1
        is_hidden = element.get(DRAW + "style-name") in self._styles.hidden
        heading = strings.hidden_slide(self._slide) if is_hidden else strings.slide_heading(self._slide, "")
        self.writer.words(heading)
        self.writer.close_paragraph("heading")
        if is_hidden:
            self.writer.gathered.leave_out("hidden slide", place=str(self._slide))
        else:
            self.walk(element)

    def notes(self, element: Element) -> None:
        self._page_notes = True
        self.walk(element)
        self._page_notes = False

    def frame(self, element: Element) -> None:
        """Handles a text box, an embedded object, or a picture (also the fallback of an object)."""
        self._apart(element)
        if element.child("image").name and not element.child(*_READ_IN_FRAMES).name:
            description = element.child("desc").line() or element.child("title").line()
            self.writer.mark("picture", description)
            if not self._in_paragraph:
                self.writer.close_paragraph("paragraph")

    def control(self, element: Element) -> None:
        self.writer.words(self._styles.controls.get(element.get(DRAW + "control"), ""))

    def object(self, element: Element) -> None:
        """Handles an embedded formula, chart or table, stored as a subdocument or inline in a flat file."""
        href = element.get(HREF)
        folder = posixpath.normpath(posixpath.join(self._folder, href)) + "/"
        if not href:
            self.walk(element)
        elif folder + CONTENT in self._archive.NameToInfo and self._depth < _MOST_NESTED:
            styles = Styles(self._archive, folder)
            words = _Words(self._archive, self.writer, styles, folder, depth=self._depth + 1)
            for each in read_elements(self._archive, folder + CONTENT, _PIECES):
                words.visit(each)
        else:
            self.writer.mark("object")

    def header(self, element: Element) -> None:
        self.writer.open_note(f"[page {element.tag}]")
        self.walk(element)
        self.writer.close_note()

    actions: ClassVar = {
        **dict.fromkeys((TEXT + tag for tag in _MARKED), marked),
        **dict.fromkeys((STYLE + tag for tag in _HEADERS), header),
        **dict.fromkeys((DRAW + "object", DRAW + "object-ole"), object),
        **dict.fromkeys((TABLE + "table-cell", TABLE + "covered-table-cell"), cell),
        **dict.fromkeys((TEXT + "tracked-changes", OFFICE + "forms"), Walker.skip),
        **dict.fromkeys((OFFICE + "annotation", TEXT + "note"), note),
        DRAW + "control": control,
        DRAW + "frame": frame,
        DRAW + "page": page,
        TABLE + "table": Walker.table,
        TABLE + "table-row": Walker.row,
        TEXT + "a": link,
        TEXT + "line-break": Walker.line_break,
        TEXT + "list": list,
        TEXT + "list-item": item,
        TEXT + "ruby-text": ruby_text,
        TEXT + "s": lambda self, element: self.say(" " * min(whole(element.get(TEXT + "c"), 1), 1_000)),
        TEXT + "tab": Walker.tab,
        _MATH + "math": lambda self, element: self.writer.words(equation_line(element)),
        _PRESENTATION + "notes": notes,
    }
