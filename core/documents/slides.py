"""Presentations (.pptx) to text: slides in their order, with titles, tables, notes and comments.

A slide is a heading such as `## Slide 3: Budget`, its paragraphs in the file's order, with bullets and
numbers by level, tables, equations, charts and diagrams (`charts`), its notes and its comments. Pictures
and embedded objects are marked. Footers are read once; dates and slide numbers are left out. Hidden slides
are left out and named.
`DrawnText` also reads the text of drawings on the sheets of workbooks.
"""

from __future__ import annotations

import zipfile
from functools import cache, partial
from typing import IO

from core.documents import strings
from core.documents.charts import drawing_id, drawing_text
from core.documents.equations import MathReader
from core.documents.limits import Gathered, Kind, Told
from core.documents.numerals import slide_figure
from core.documents.parts import FALLBACK, A, Elements, M, P, R, Relations, is_equation, opened, parse_part
from core.documents.writer import PLAIN, Marks, Writer

_MAIN = "ppt/presentation.xml"
_MOST_SLIDE_BYTES = 64 * 1024 * 1024
_TITLES = frozenset(("title", "ctrTitle"))
_REPEATED = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
_DEEPEST = 8


def slides_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """All visible slides. Raises `UnreadableError`, OSError."""
    says = False
    footers: dict[str, None] = {}
    with opened(stream) as archive:
        main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
        order = _Order()
        parse_part(archive, main, order, _MOST_SLIDE_BYTES)
        parts = Relations(archive, main).by_id
        for number, identifier in enumerate(order.slides, 1):
            told(number - 1, len(order.slides), "pages")
            part = parts.get(identifier, "")
            of_slide = Relations(archive, part)
            slide = DrawnText(archive, of_slide, gathered)
            parse_part(archive, part, slide, _MOST_SLIDE_BYTES)
            if slide.hidden:
                gathered.leave_out("hidden slide", place=str(number))
                gathered.add(f"{strings.hidden_slide(number)}\n\n")
                continue
            text = slide.text()
            gathered.add(f"{strings.slide_heading(number, slide.title)}\n\n")
            gathered.add(f"{text}\n\n" if text else "")
            noted = [_part_text(archive, part, gathered) for part in of_slide.texts("notesSlide", archive)]
            gathered.add("".join(f"{strings.slide_notes(each)}\n\n" for each in noted[:1] if each))
            for part in of_slide.texts("comments", archive):
                comments = _Comments()
                parse_part(archive, part, comments, _MOST_SLIDE_BYTES)
                gathered.add("".join(f"[comment] {each}\n\n" for each in comments.all))
            footers |= dict.fromkeys(slide.footers)
            says = says or bool(slide.says or any(noted) or slide.title)
        gathered.add("".join(f"[page footer] {footer}\n" for footer in footers))
    return gathered.text().strip("\n") if says else ""


def _part_text(archive: zipfile.ZipFile, part: str, gathered: Gathered) -> str:
    notes = DrawnText(archive, Relations(archive, part), gathered, notes=True)
    parse_part(archive, part, notes, _MOST_SLIDE_BYTES)
    return notes.text()


class _Order(Elements):
    """Reads the presentation's part: the slides' relations in order."""

    def __init__(self) -> None:
        self.slides: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == P + "sldId":
            self.slides.append(attributes.get(R + "id", ""))


class _Comments(Elements):
    """Reads the comments of a slide, of old and new files."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._text: list[str] = []
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._inside = name in (P + "text", A + "t")

    def end(self, name: str) -> None:
        self._inside = False
        text = " ".join("".join(self._text).split())
        if text and (name == P + "text" or name.rpartition(" ")[2] == "txBody"):
            self.all.append(text)
            self._text = []

    def characters(self, text: str) -> None:
        if self._inside:
            self._text.append(text)


class DrawnText(Elements):
    """Reads a slide, its notes, or the drawing on a sheet: paragraphs, tables, charts, pictures."""

    def __init__(
        self, archive: zipfile.ZipFile, relations: Relations, gathered: Gathered, *, notes: bool = False
    ) -> None:
        self.hidden = False
        self.footers: list[str] = []
        self._title: list[str] = []
        self._writer = Writer(gathered.inner())
        self._relations = relations
        self._drawn = cache(partial(drawing_text, archive, relations))
        self._notes = notes
        self._placeholder = "body" if not notes else ""
        self._level = 0
        self._bullet = ""  # its kind: a sign, `none`, or a way to count
        self._counts: dict[int, tuple[str, int]] = {}  # the last number of each level
        self._start_at = 1
        self._in_text = self._hides = False
        self._marks = PLAIN
        self._has_link = False
        self._description = ""
        self._fallbacks = 0
        self._math: MathReader | None = None

    @property
    def title(self) -> str:
        """The slide's title on one line."""
        return " ".join(" ".join(self._title).split())

    @property
    def says(self) -> bool:
        """Whether there is a text beside marks."""
        return self._writer.says

    def text(self) -> str:
        """The paragraphs and tables without the title."""
        return self._writer.text()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == FALLBACK:
            self._fallbacks += 1
        if self._fallbacks:
            return
        tag = name.rpartition(" ")[2]
        if name.startswith(M):
            if self._math is not None:
                self._math.start(tag, attributes.get(M + "val", ""))
            elif tag == "oMath":
                self._math = MathReader()
        elif name.startswith(A):
            self._start_text(tag, attributes)
        elif identifier := drawing_id(name, attributes):
            self._writer.apart()
            self._writer.words(self._drawn(identifier))
            self._writer.close_paragraph()
        else:
            self._start_shape(tag, attributes)

    def _start_shape(self, tag: str, attributes: dict[str, str]) -> None:
        match tag:
            case "sld":
                self.hidden = attributes.get("show") in ("0", "false")
            case "sp" | "graphicFrame" | "pic" | "cxnSp":
                self._placeholder, self._hides, self._counts = "", False, {}
            case "ph":
                self._placeholder = attributes.get("type", "body")
            case "cNvPr":
                self._hides = attributes.get("hidden") in ("1", "true")
                self._description = attributes.get("descr", "")
            case "oleObj":
                self._alone("equation" if is_equation(attributes.get("progId", "")) else "object")

    def _alone(self, kind: Kind) -> None:
        """A mark in a line of its own."""
        if not self._hides and not self._notes:
            self._writer.mark(kind, self._description if kind == "picture" else "")
            self._writer.close_paragraph("line")

    def _start_text(self, tag: str, attributes: dict[str, str]) -> None:
        writer = self._writer
        match tag:
            case "p":
                writer.open_paragraph()
                self._level, self._bullet, self._start_at = 0, "", 1
            case "pPr":
                level = attributes.get("lvl", "0")
                self._level = min(int(level), _DEEPEST) if level.isascii() and level.isdigit() else 0
            case "buChar" | "buBlip":
                self._bullet = "-"
            case "buNone":
                self._bullet = "none"
            case "buAutoNum":
                self._bullet = attributes.get("type", "arabicPeriod")
                first = attributes.get("startAt", "1")
                self._start_at = int(first) if first.isascii() and first.isdigit() and len(first) < 6 else 1
            case "rPr":
                baseline = attributes.get("baseline", "0")
                script = "" if not baseline.strip("-0%") else "sub" if baseline.startswith("-") else "super"
                struck = attributes.get("strike", "noStrike") != "noStrike"
                self._marks = Marks(script, struck, self._hides)
            case "r" | "fld":
                self._marks = Marks(hidden=self._hides)
            case "hlinkClick" if not self._has_link:
                self._has_link = True
                writer.open_link(self._relations.external.get(attributes.get(R + "id", ""), ""))
            case "t":
                self._in_text = True
            case "br":
                writer.words("\n")
            case "tab":
                writer.words("\t")
            case "tbl":
                writer.open_table()
            case "tr":
                writer.open_row()
            case "tc":
                writer.open_cell()

    def end(self, name: str) -> None:
        if name == FALLBACK:
            self._fallbacks -= 1
        if self._fallbacks:
            return
        tag = name.rpartition(" ")[2]
        writer = self._writer
        if name.startswith(M):
            if self._math is not None and self._math.end():
                line, self._math = self._math.line(), None
                writer.words(line, Marks(hidden=self._hides))
        elif name.startswith(A):
            match tag:
                case "t":
                    self._in_text = False
                case "r" | "fld" if self._has_link:
                    self._has_link = False
                    writer.close_link()
                case "p":
                    self._end_paragraph()
                case "tc":
                    writer.close_cell()
                case "tbl":
                    writer.close_table()
        elif tag == "pic":
            self._alone("picture")
        elif tag == "sp":
            self._placeholder, self._hides = "", False

    def characters(self, text: str) -> None:
        if self._fallbacks:
            return
        if self._math is not None:
            self._math.characters(text)
        elif self._in_text:
            self._writer.words(text, self._marks)

    def _end_paragraph(self) -> None:
        writer, level = self._writer, self._level
        if self._has_link:  # of the shape
            self._has_link = False
            writer.close_link()
        if writer.in_cell:
            writer.close_paragraph("line", self._mark())
        elif self._placeholder in ("ftr", "hdr") and not self._notes and writer.has_words:
            self.footers.append(" ".join(writer.take_paragraph().split()))
        elif self._placeholder in _REPEATED or (self._notes and self._placeholder != "body"):
            writer.take_paragraph()
        elif self._placeholder in _TITLES and not self._notes:
            self._title.append(writer.take_paragraph())
        else:
            writer.close_paragraph("line", "  " * (level - 1) + self._mark())

    def _mark(self) -> str:
        """The bullet or number of the paragraph that ends."""
        if not self._writer.has_words:
            return ""
        self._counts = {level: each for level, each in self._counts.items() if level <= self._level}
        if self._bullet in ("", "-", "none"):
            self._counts.pop(self._level, None)
            return "- " if self._bullet == "-" or (self._level and not self._bullet) else ""
        kind, last = self._counts.get(self._level, ("", 0))
        number = last + 1 if kind == self._bullet else self._start_at
        self._counts[self._level] = self._bullet, number
        return f"{slide_figure(number, self._bullet)} "
