"""Presentations (.pptx) to text: slides in their order, with titles, tables, notes and comments.

A slide is a heading such as `## Slide 3: Budget`, its paragraphs in the file's order, with bullets and
numbers by level, tables, equations, charts and diagrams (`charts`), its notes and its comments. Pictures
and embedded objects are marked. Footers are read once; dates and slide numbers are left out. Hidden slides
are left out and named. Texts of layouts and masters that are in no placeholder follow the first slide that
shows them.
`DrawnText` also reads the text of drawings on the sheets of workbooks.
"""

from __future__ import annotations

import zipfile
from typing import IO, ClassVar

from core.documents import strings
from core.documents.charts import OfficeWalker
from core.documents.limits import Gathered, Kind, Told
from core.documents.numerals import slide_figure
from core.documents.parts import (
    BROKEN,
    SHEET_DRAWING,
    A,
    Element,
    P,
    R,
    Relations,
    is_equation,
    is_true,
    opened,
    read_tree,
    whole,
)
from core.documents.writer import PLAIN, Marks, Writer

_MAIN = "ppt/presentation.xml"
_MOST_SLIDE_BYTES = 64 * 1024 * 1024
_TITLES = frozenset(("title", "ctrTitle"))
_REPEATED = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
_SHAPES = ("sp", "graphicFrame", "pic", "cxnSp")
_DEEPEST = 8


def slides_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """All visible slides. Raises `UnreadableError`, OSError."""
    says = False
    footers: dict[str, None] = {}
    with opened(stream) as archive:
        main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
        order = [each.get(R + "id") for each in read_tree(archive, main).all("sldId")]
        parts = Relations(archive, main).by_id
        behind: dict[str, list[str]] = {}  # texts of layouts and masters, by part
        for number, identifier in enumerate(order, 1):
            told(number - 1, len(order), "pages")
            try:
                slide = DrawnText(archive, parts.get(identifier, ""), gathered)
            except BROKEN:
                gathered.leave_out("missing page", place=strings.slide_place(number))
                gathered.add(f"{strings.missing_page(strings.slide_place(number))}\n\n")
                continue
            if slide.hidden:
                gathered.leave_out("hidden slide", place=str(number))
                gathered.add(f"{strings.hidden_slide(number)}\n\n")
                continue
            text = slide.text()
            gathered.add(f"{strings.slide_heading(number, slide.title)}\n\n")
            gathered.add(f"{text}\n\n" if text else "")
            notes = slide.relations.texts("notesSlide", archive)[:1]
            noted = [DrawnText(archive, part, gathered, notes=True).text() for part in notes]
            gathered.add("".join(f"{strings.slide_notes(each)}\n\n" for each in noted if each))
            for part in slide.relations.texts("comments", archive):
                # Newer files have paragraphs in their comments.
                found = (
                    each.line("t") or each.line() for each in read_tree(archive, part).all("text", "txBody")
                )
                gathered.add("".join(f"[comment] {each}\n\n" for each in found if each))
            footers |= dict.fromkeys(slide.footers)
            if slide.shows_layout:
                for text in _behind(archive, slide.relations, gathered, behind):
                    gathered.add(f"{strings.slide_background(text)}\n\n")
                    says = True
            says = says or bool(slide.writer.says or any(noted) or slide.title)
        gathered.add("".join(f"[page footer] {footer}\n" for footer in footers))
    return gathered.text().strip("\n") if says else ""


def _behind(
    archive: zipfile.ZipFile, relations: Relations, gathered: Gathered, read: dict[str, list[str]]
) -> list[str]:
    """The texts of a slide's layout and master that are in no placeholder; those in `read` are known."""
    found: list[str] = []
    for kind in ("slideLayout", "slideMaster"):
        part = relations.by_kind.get(kind, "")
        if part not in archive.NameToInfo:
            break
        if part in read:
            return found
        read[part] = []
        try:
            drawn = DrawnText(archive, part, Gathered(gathered.left), behind=True)
        except BROKEN:
            break
        if text := " ".join(drawn.text().split()):
            found.append(text)
        if not drawn.shows_layout:
            break
        relations = drawn.relations
    return found


class DrawnText(OfficeWalker):
    """Reads a slide, its notes, or the drawing on a sheet: paragraphs, tables, charts, pictures."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        part: str,
        gathered: Gathered,
        *,
        notes: bool = False,
        behind: bool = False,
    ) -> None:
        super().__init__(archive, part, Writer(gathered.inner()))
        self.footers: list[str] = []
        self._title: list[str] = []
        self._notes, self._behind = notes, behind
        self._placeholder = ""
        self._link = ""  # of the open shape, until its first paragraph ends
        self._description = ""
        self._counts: dict[int, tuple[str, int]] = {}  # the last number of each level
        self._hides = False
        self._hidden_groups = 0  # that are open
        root = read_tree(archive, part, _MOST_SLIDE_BYTES)
        self.hidden = root.get("show") in ("0", "false")
        self.shows_layout = root.get("showMasterSp", "1") not in ("0", "false")
        if not self.hidden:
            self.walk(root)

    @property
    def title(self) -> str:
        """The slide's title on one line."""
        return " ".join(" ".join(self._title).split())

    def text(self) -> str:
        """The paragraphs and tables without the title."""
        return self.writer.text()

    def shape(self, element: Element) -> None:
        own = element.elements[0] if element.elements else element  # such as `nvSpPr`
        properties, place = own.child("cNvPr"), next(own.all("ph"), None)
        if self._behind and (place or element.tag == "pic"):  # a prompt, or a picture on every slide
            return
        self._placeholder = place.get("type", "body") if place else ""
        self._hides, self._counts = bool(self._hidden_groups) or is_true(properties.get("hidden")), {}
        self._description = properties.get("descr")
        self._link = self._address(properties)
        self.marks = Marks(hidden=self._hides)
        self.walk(element)
        if element.tag == "pic":
            self._alone("picture")
        self._placeholder, self._hides, self._link, self.marks = "", False, "", PLAIN

    def group(self, element: Element) -> None:
        hides = is_true(element.child("nvGrpSpPr").child("cNvPr").get("hidden"))
        self._hidden_groups += hides
        self.walk(element)
        self._hidden_groups -= hides

    def _address(self, properties: Element) -> str:
        return self.relations.external.get(properties.child("hlinkClick").get(R + "id"), "")

    def object(self, element: Element) -> None:
        self._alone("equation" if is_equation(element.get("progId")) else "object")

    def _alone(self, kind: Kind) -> None:
        """A mark in a separate line."""
        if not self._hides and not self._notes and not self._behind:
            self.writer.mark(kind, self._description if kind == "picture" else "")
            self.writer.close_paragraph("line")

    def run(self, element: Element) -> None:
        properties = element.child("rPr")
        baseline = properties.get("baseline", "0")
        script = "" if not baseline.strip("-0%") else "sub" if baseline.startswith("-") else "super"
        self.marks = Marks(script, properties.get("strike", "noStrike") != "noStrike", self._hides)
        self.writer.open_link(self._address(properties))
        self.walk(element)
        self.writer.close_link()
        self.marks = Marks(hidden=self._hides)

    def paragraph(self, element: Element) -> None:
        writer, of = self.writer, element.child("pPr")
        writer.open_paragraph()
        writer.open_link(self._link)
        self.walk(element)
        writer.close_link()
        self._link = ""
        level = min(whole(of.get("lvl")), _DEEPEST)
        if writer.in_cell:
            writer.close_paragraph("line", self._mark(of, level))
        elif self._placeholder in ("ftr", "hdr") and not self._notes and writer.has_words:
            self.footers.append(" ".join(writer.take_paragraph().split()))
        elif self._placeholder in _REPEATED or (self._notes and self._placeholder != "body"):
            writer.take_paragraph()
        elif self._placeholder in _TITLES and not self._notes:
            self._title.append(writer.take_paragraph())
        else:
            writer.close_paragraph("line", "  " * (level - 1) + self._mark(of, level))

    def _mark(self, properties: Element, level: int) -> str:
        """The bullet or number of the paragraph that ends."""
        if not self.writer.has_words:
            return ""
        bullet = properties.child("buChar", "buBlip", "buNone", "buAutoNum")
        self._counts = {each: count for each, count in self._counts.items() if each <= level}
        if bullet.tag != "buAutoNum":
            self._counts.pop(level, None)
            return "- " if bullet.tag in ("buChar", "buBlip") or (level and not bullet.tag) else ""
        way = bullet.get("type", "arabicPeriod")
        kind, last = self._counts.get(level, ("", 0))
        number = last + 1 if kind == way else whole(bullet.get("startAt"), 1)
        self._counts[level] = way, number
        return f"{slide_figure(number, way)} "

    actions: ClassVar = {
        **OfficeWalker.actions,
        **dict.fromkeys((space + tag for space in (P, SHEET_DRAWING) for tag in _SHAPES), shape),
        **dict.fromkeys((P + "grpSp", SHEET_DRAWING + "grpSp"), group),
        P + "oleObj": object,
        A + "br": OfficeWalker.line_break,
        A + "fld": run,
        A + "p": paragraph,
        A + "pPr": OfficeWalker.skip,
        A + "r": run,
        A + "t": OfficeWalker.spoken,
        A + "tbl": OfficeWalker.table,
        A + "tc": OfficeWalker.cell,
        A + "tr": OfficeWalker.row,
    }
