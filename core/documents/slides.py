"""Presentations (.pptx) to text: slides in their order, with titles, tables and notes.

A slide is a heading such as `## Slide 3: Budget`, its paragraphs in the file's order, tables as lines with
tabs between cells, charts and diagrams (`charts`), and its notes. Dates, footers and slide numbers are left
out, as are pictures and comments. Hidden slides are left out and named.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import IO

from core.documents import strings
from core.documents.charts import drawing_id, drawing_text
from core.documents.limits import DamagedError, Gathered, Told, UnreadableError
from core.documents.parts import A, P, Package, R, Relations, parse_part

_MAIN = "ppt/presentation.xml"
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
_MOST_SLIDE_BYTES = 64 * 1024 * 1024
_TITLES = frozenset(("title", "ctrTitle"))
_REPEATED = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
_DEEPEST = 8


def slides_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """All visible slides. Raises `UnreadableError`, OSError."""
    says = False
    try:
        with Package(stream) as archive:
            main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
            order = _Order()
            parse_part(archive, main, order, _MOST_SLIDE_BYTES)
            parts = Relations(archive, main).by_id
            for number, identifier in enumerate(order.slides, 1):
                told(number - 1, len(order.slides), "pages")
                part = parts.get(identifier, "")
                of_slide = Relations(archive, part)
                slide = _Slide(gathered.left, cache(partial(drawing_text, archive, of_slide)))
                parse_part(archive, part, slide, _MOST_SLIDE_BYTES)
                if slide.hidden:
                    gathered.add(f"{strings.hidden_slide(number)}\n\n")
                    continue
                text = slide.text()
                gathered.add(f"{strings.slide_heading(number, slide.title)}\n\n")
                gathered.add(f"{text}\n\n" if text else "")
                notes = _Slide(gathered.left, lambda identifier: "", notes=True)
                if (notes_part := of_slide.by_kind.get("notesSlide")) in archive.NameToInfo:
                    parse_part(archive, str(notes_part), notes, _MOST_SLIDE_BYTES)
                noted = notes.text()
                gathered.add(f"{strings.slide_notes(noted)}\n\n" if noted else "")
                says = says or bool(text or noted or slide.title)
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise DamagedError from error
    return gathered.text().strip("\n") if says else ""


class _Order:
    """Reads the presentation's part: the slides' relations in order."""

    def __init__(self) -> None:
        self.slides: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == P + "sldId":
            self.slides.append(attributes.get(R + "id", ""))

    def end(self, name: str) -> None:
        """Nothing depends on an end."""

    def characters(self, text: str) -> None:
        """The part holds no text."""


class _Slide:
    """Reads a slide, or the text of its notes."""

    def __init__(self, most_characters: int, drawn: Callable[[str], str], *, notes: bool = False) -> None:
        """`drawn` returns the text of the chart or diagram with a relation's id."""
        self._title: list[str] = []
        self.hidden = False
        self._lines = Gathered(most_characters)
        self._drawn = drawn
        self._notes = notes
        self._placeholder = "body" if not notes else ""
        self._paragraph: list[str] = []
        self._level = 0
        self._in_text = False
        self._fallbacks = 0
        self._cells: list[str] | None = None  # of the open row
        self._cell: list[str] = []

    @property
    def title(self) -> str:
        """The slide's title on one line."""
        return " ".join(" ".join(self._title).split())

    def text(self) -> str:
        """The paragraphs and tables without the title."""
        return self._lines.text().strip("\n")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == _FALLBACK:
            self._fallbacks += 1
        elif name == P + "sld":
            self.hidden = attributes.get("show") in ("0", "false")
        elif name == P + "sp":
            self._placeholder = ""
        elif name == P + "ph":
            self._placeholder = attributes.get("type", "body")
        elif name == A + "p":
            self._paragraph, self._level = [], 0
        elif name == A + "pPr":
            level = attributes.get("lvl", "0")
            self._level = min(int(level), _DEEPEST) if level.isascii() and level.isdigit() else 0
        elif name == A + "t":
            self._in_text = True
        elif name == A + "br":
            self._paragraph.append("\n")
        elif name == A + "tr":
            self._cells = []
        elif name == A + "tc":
            self._cell = []
        elif identifier := drawing_id(name, attributes):
            lines = "" if self._fallbacks else self._drawn(identifier)
            self._lines.add(f"\n{lines}\n\n" if lines else "")

    def end(self, name: str) -> None:
        if name == _FALLBACK:
            self._fallbacks -= 1
        elif name == A + "t":
            self._in_text = False
        elif name == A + "p" and not self._fallbacks:
            self._end_paragraph()
        elif name == A + "tc" and self._cells is not None:
            self._cells.append(" ".join(" ".join(self._cell).split()))
        elif name == A + "tr" and self._cells is not None:
            row, self._cells = "\t".join(self._cells).rstrip(), None
            self._lines.add(f"{row}\n")
        elif name == A + "tbl":
            self._lines.add("\n")
        elif name == P + "sp":
            self._placeholder = ""

    def characters(self, text: str) -> None:
        if self._in_text and not self._fallbacks:
            self._paragraph.append(text)

    def _end_paragraph(self) -> None:
        text = "".join(self._paragraph).strip()
        self._paragraph = []
        if self._cells is not None:
            self._cell.append(text)
        elif not text or self._placeholder in _REPEATED or (self._notes and self._placeholder != "body"):
            return
        elif self._placeholder in _TITLES and not self._notes:
            self._title.append(text)
        else:
            mark = "  " * (self._level - 1) + "- " if self._level else ""
            self._lines.add(f"{mark}{text}\n")
