"""Word documents (.docx, and the XML of Word 2003) to text.

The text is the final version: insertions and moved text are in, deletions and the old places of moved text
are not. Footnotes, endnotes and comments are numbered where they are referred to and follow the text, as do
page headers and footers. Equations become linear text (`equations`), symbols Unicode (`docx_symbols`), ruby
text follows its base in brackets, form fields show their state or choice. Charts and diagrams are read
(`charts`), and parts of other formats (altChunk). Pictures and embedded objects are marked; hidden text is
left out and counted.

A .docx is a zip of XML parts; each is decompressed and parsed in pieces without a tree, so that memory does
not grow with the file. The common library loses clause numbers (mammoth) or needs a compiled XML parser
(python-docx).
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from functools import cache, partial
from typing import IO

from core.documents.charts import drawing_id, drawing_text
from core.documents.docx_lists import WordLists, is_on, level_number
from core.documents.docx_symbols import symbol
from core.documents.equations import MathReader
from core.documents.limits import DamagedError, Gathered, NotWordError, Told, UnreadableError
from core.documents.parts import (
    FALLBACK,
    MOST_XML_BYTES,
    A,
    Elements,
    M,
    Package,
    R,
    Relations,
    W,
    is_equation,
    parse_part,
    read_part,
)
from core.documents.writer import Block, Marks, Writer

_MAIN = "word/document.xml"
# Their content is not part of the final version, or not text.
_LEFT_OUT = frozenset(("del", "moveFrom", "pPrChange", "rPrChange", "delInstrText"))
_NOTES = ("footnotes", "endnotes", "comments")
_VML, _OLE = "urn:schemas-microsoft-com:vml ", "urn:schemas-microsoft-com:office:office OLEObject"
_PICTURES = (_VML + "imagedata", A + "blip")
_PROPERTIES = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing docPr"
_NUMBERS_OF_PAGES = frozenset(("PAGE", "NUMPAGES", "SECTIONPAGES"))
_ADDRESS = re.compile(r'HYPERLINK\s+"?([^"\s]+)', re.IGNORECASE)
_RUN = frozenset(("vanish", "strike", "dstrike", "vertAlign", "position"))
_MOST_SPAN = 64
_MOST_CHUNKS = 200


def docx_text(stream: IO[bytes], told: Told, gathered: Gathered, *, depth: int = 0) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    try:
        with Package(stream) as archive:
            main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
            if main not in archive.NameToInfo or not main.startswith("word/"):
                raise NotWordError
            relations, writer = Relations(archive, main), Writer(gathered)
            lists = WordLists(archive, relations.by_kind)
            words = _Words(archive, relations, writer, lists, depth=depth)
            parse_part(archive, main, words, MOST_XML_BYTES, told)
            for kind in _NOTES:
                part = relations.by_kind.get(kind, f"word/{kind}.xml")
                if part in archive.NameToInfo and writer.has_references(kind):
                    own = Relations(archive, part)
                    parse_part(archive, part, _Words(archive, own, writer, lists, notes=kind), MOST_XML_BYTES)
            for kind in ("header", "footer"):
                for part in relations.texts(kind, archive):
                    writer.open_note(f"[page {kind}]")
                    own = Relations(archive, part)
                    words = _Words(archive, own, writer, lists, notes=kind)
                    parse_part(archive, part, words, MOST_XML_BYTES)
                    writer.close_note()
            text = writer.text()
            return text if writer.says else ""
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise (DamagedError if _begins_like_word(stream) else NotWordError) from error


def _begins_like_word(stream: IO[bytes]) -> bool:
    """Names of the first parts of a zip without its central directory."""
    stream.seek(0)
    return b"word/" in stream.read(4096)


class _Paragraph:
    """Properties of an open paragraph: its style, list and level."""

    def __init__(self) -> None:
        self.style = ""
        self.use: str | None = None
        self.level: int | None = None


class _Field:
    """An open field: its instruction until `has_result`, and the state of a form's box or choice."""

    def __init__(self, instruction: str = "") -> None:
        self.instruction = instruction
        self.has_result = self.is_link = self.is_silent = False
        self.checked: bool | None = None
        self.chosen = 0
        self.choices: list[str] = []


class _Words(Elements):
    """Takes the elements of a part and tells `writer`. Of the part of `notes` only what is referred to."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        relations: Relations,
        writer: Writer,
        lists: WordLists,
        *,
        notes: str = "",
        depth: int = 0,
    ) -> None:
        self._archive, self._relations, self._writer, self._lists = archive, relations, writer, lists
        self._drawn = cache(partial(drawing_text, archive, relations))
        self._notes = notes
        self._depth = depth
        # Outside of a note that is referred to nothing is read.
        self._silent = notes in _NOTES
        # The innermost last: a text box is inside a paragraph and contains paragraphs.
        self._open: list[_Paragraph] = []
        self._fields: list[_Field] = []
        self._fallbacks = self._left_out = self._chunks = self._muted = 0
        self._in_text = self._in_instruction = self._in_run = self._in_properties = self._in_object = False
        self._direct: dict[str, str] = {}  # of the open run
        self._style = ""  # of the open run
        self._marks: Marks | None = None  # of the open run, when they are known
        self._math: MathReader | None = None
        self._reading: list[str] | None = None  # the open reading of ruby text
        self._readings: list[str] = []
        self._description = ""  # of the open drawing
        self._deleted = 0

    def characters(self, text: str) -> None:
        if self._deleted and self._in_text:
            self._writer.gathered.leave_out("deleted word", len(text.split()))
        if self._left_out or self._fallbacks or self._silent:
            return
        if self._math is not None:
            self._math.characters(text)
        elif self._in_instruction and self._fields and not self._fields[-1].has_result:
            self._fields[-1].instruction += text
        elif self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        if self._reading is not None:
            self._reading.append(text)
        elif self._open and not self._muted:
            self._writer.words(text, self._run_marks() if self._in_run else Marks())

    def _run_marks(self) -> Marks:
        """The open run's own properties, else those of its style, else of its paragraph's."""
        if self._marks is None:
            styles = (self._style, self._open[-1].style)
            of = {**self._lists.properties(styles[1]), **self._lists.properties(styles[0]), **self._direct}
            script = of.get("vertAlign", "")
            raised = of.get("position", "0")
            if not script.endswith("script") and raised.lstrip("-").isdigit() and int(raised):
                script = "subscript" if raised.startswith("-") else "superscript"
            struck = of.get("strike") == "1" or of.get("dstrike") == "1"
            is_script = script.endswith("script")
            self._marks = Marks(
                script.removesuffix("script") if is_script else "", struck, of.get("vanish") == "1"
            )
        return self._marks

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == FALLBACK:
            self._fallbacks += 1
        if self._fallbacks:
            return
        tag = name[len(W) :] if name.startswith(W) else ""
        if tag in ("footnote", "endnote", "comment") and self._notes in _NOTES:
            label = self._writer.referred(self._notes, attributes.get(W + "id", ""))
            self._silent = not label
            if label:
                author = attributes.get(W + "author", "")
                self._writer.open_note(f"{label} {author}:" if author else label)
        if tag in _LEFT_OUT:
            self._left_out += 1
            self._deleted += tag == "del"
        if self._left_out or self._silent:
            self._in_text = self._in_text or tag == "delText"
        elif name.startswith(M):
            self._start_math(name[len(M) :], attributes.get(M + "val", ""))
        elif tag:
            self._start_word(tag, attributes)
        elif self._open:
            self._start_drawn(name, attributes)

    def _start_math(self, tag: str, value: str) -> None:
        if self._math is not None:
            self._math.start(tag, value)
        elif tag == "oMath" and self._open:
            self._math = MathReader()

    def _start_drawn(self, name: str, attributes: dict[str, str]) -> None:
        """Drawings, pictures and objects inside of a paragraph."""
        if identifier := drawing_id(name, attributes):
            self._writer.words(f"\n{self._drawn(identifier)}\n")
        elif name == _PROPERTIES:
            self._description = attributes.get("descr") or attributes.get("title", "")
        elif name == _OLE:
            program = attributes.get("ProgID", "")
            self._writer.mark("equation" if is_equation(program) else "object")
        elif name in _PICTURES and not self._in_object:
            self._writer.mark("picture", self._description)
        elif name == _VML + "shape":
            self._description = attributes.get("alt", "")
        elif name == _VML + "textpath":  # WordArt
            self._writer.words(attributes.get("string", ""))

    def _start_word(self, tag: str, attributes: dict[str, str]) -> None:
        writer = self._writer
        match tag:
            case "p":
                self._open.append(_Paragraph())
                writer.open_paragraph()
            case "tbl":
                writer.open_table()
            case "tr":
                writer.open_row()
            case "tc":
                writer.open_cell()
            case "gridSpan":
                writer.widen_cell(_count(attributes) or 1)
            case "gridBefore":
                for _ in range(_count(attributes)):  # columns that the row leaves out
                    writer.open_cell()
                    writer.close_cell()
            case "altChunk" if self._chunks < _MOST_CHUNKS:
                self._chunks += 1
                self._chunk(self._relations.by_id.get(attributes.get(R + "id", ""), ""))
            case _ if self._open:
                self._in_paragraph(self._open[-1], tag, attributes)

    def _chunk(self, part: str) -> None:
        """A part in another format."""
        from core.documents.mixed import mixed_text

        text = ""
        if part in self._archive.NameToInfo and not self._depth:
            data = read_part(self._archive, part, MOST_XML_BYTES)
            text = mixed_text(data, part, self._writer.gathered.inner(), docx_part)
        self._writer.put(Block("paragraph", text or "[object]"))
        if not text:
            self._writer.gathered.leave_out("object")

    def _in_paragraph(self, paragraph: _Paragraph, tag: str, attributes: Mapping[str, str]) -> None:
        value = attributes.get(W + "val", "")
        match tag:
            case "r":
                self._in_run, self._style, self._direct, self._marks = True, "", {}, None
            case "rPr":
                self._in_properties = self._in_run
            case "rStyle":
                self._style = value
            case _ if tag in _RUN and self._in_properties:
                self._direct[tag] = value if tag in ("vertAlign", "position") else str(int(is_on(attributes)))
            case "t":
                self._in_text = True
            case "instrText":
                self._in_instruction = True
            case "tab" | "ptab":
                self._add("\t")
            case "br" | "cr":
                self._add("\n")
            case "noBreakHyphen":
                self._add("-")
            case "sym":
                self._add(symbol(attributes.get(W + "font", ""), attributes.get(W + "char", "")))
            case "footnoteReference" | "endnoteReference" | "commentReference" if (
                not self._run_marks().hidden
            ):
                kind = tag.removesuffix("Reference") + "s"
                self._writer.words(self._writer.refer(kind, attributes.get(W + "id", "")))
            case "hyperlink":
                self._writer.open_link(self._relations.external.get(attributes.get(R + "id", ""), ""))
            case "object":
                self._in_object = True
            case "rt":
                self._reading = []
            case "pStyle":
                paragraph.style = value
            case "numId":
                paragraph.use = value
            case "ilvl":
                paragraph.level = level_number(value)
            case _:
                self._in_field(tag, value, attributes)

    def _in_field(self, tag: str, value: str, attributes: Mapping[str, str]) -> None:
        if tag == "fldSimple":
            self._fields.append(_Field(attributes.get(W + "instr", "")))
            self._begin_result(self._fields[-1])
        elif tag == "fldChar":
            kind = attributes.get(W + "fldCharType", "")
            if kind == "begin":
                self._fields.append(_Field())
            elif kind == "separate" and self._fields:
                self._begin_result(self._fields[-1])
            elif kind == "end" and self._fields:
                self._end_field(self._fields.pop())
        elif self._fields and tag in ("checkBox", "default", "checked", "result", "listEntry"):
            field = self._fields[-1]
            if tag == "listEntry":
                field.choices.append(value)
            elif field.checked is None and tag != "checkBox":
                field.chosen = int(value) if value.isascii() and value.isdigit() and len(value) < 5 else 0
            else:
                field.checked = tag != "checkBox" and is_on(attributes)

    def _begin_result(self, field: _Field) -> None:
        field.has_result = True
        instruction = field.instruction.split()
        if found := _ADDRESS.search(field.instruction):
            field.is_link = True
            self._writer.open_link(found[1])
        # The number of the page of a header says nothing.
        field.is_silent = (
            bool(instruction) and instruction[0] in _NUMBERS_OF_PAGES and self._notes not in ("", *_NOTES)
        )
        self._muted += field.is_silent

    def _end_field(self, field: _Field) -> None:
        self._muted -= field.is_silent
        if field.is_link:
            self._writer.close_link()
        if field.checked is not None:
            self._add("[x]" if field.checked else "[ ]")
        elif field.choices and not field.has_result:
            self._add(field.choices[min(field.chosen, len(field.choices) - 1)])

    def end(self, name: str) -> None:
        if name == FALLBACK:
            self._fallbacks -= 1
            return
        if self._fallbacks:
            return
        if name.startswith(M) and self._math is not None and self._math.end():
            line, self._math = self._math.line(), None
            self._add(line)
        tag = name[len(W) :] if name.startswith(W) else ""
        if tag in _LEFT_OUT:
            self._left_out -= 1
            self._deleted -= tag == "del"
        if tag in ("t", "delText"):
            self._in_text = False
        if self._left_out or self._silent or not tag:
            return
        writer = self._writer
        match tag:
            case "footnote" | "endnote" | "comment" if self._notes in _NOTES:
                writer.close_note()
                self._silent = True
            case "instrText":
                self._in_instruction = False
            case "rPr":
                self._in_properties = False
            case "r":
                self._in_run = False
            case "hyperlink":
                writer.close_link()
            case "fldSimple" if self._fields:
                self._end_field(self._fields.pop())
            case "object":
                self._in_object = False
            case "drawing" | "pict":
                self._description = ""
            case "rt" if self._reading is not None:
                self._readings, self._reading = self._reading, None
            case "rubyBase" if reading := "".join(self._readings).strip():
                self._readings = []
                self._add(f"({reading})")
            case "p" if self._open:
                self._paragraph(self._open.pop())
            case "tc":
                writer.close_cell()
            case "tbl":
                writer.close_table()

    def _paragraph(self, whole: _Paragraph) -> None:
        # Also without a word in it, it counts.
        mark = self._lists.mark(whole.style, whole.use, whole.level)
        level = self._lists.heading_level(whole.style)
        number = f"{mark.text} " if mark and mark.text else ""
        if level and not self._writer.in_cell:
            self._writer.close_paragraph("heading", f"{'#' * level} {number}")
        elif mark:
            self._writer.close_paragraph("item", number, mark.level)
        else:
            self._writer.close_paragraph("paragraph", number)


def docx_part(data: bytes, gathered: Gathered) -> str:
    """The text of a document inside of another. Raises as `docx_text` does."""
    return docx_text(io.BytesIO(data), lambda done, total, unit: None, gathered, depth=1)


def _count(attributes: Mapping[str, str]) -> int:
    """A number of columns; 0 if it is not one."""
    value = attributes.get(W + "val", "")
    return min(int(value), _MOST_SPAN) if value.isascii() and value.isdigit() else 0
