"""Word documents (.docx, and the XML of Word 2003) to text.

The text is the final version: insertions and moved text are in, deletions and the old places of moved text
are not. Footnotes, endnotes and comments are numbered where they are referred to and follow the text, as do
page headers and footers. Equations become linear text (`equations`), symbols Unicode (`docx_symbols`), ruby
text follows its base in brackets, form fields show their state or choice. Charts and diagrams are read
(`charts`), and parts of other formats (altChunk). Pictures and embedded objects are marked; hidden text is
left out and counted.

A .docx is a zip of XML parts; each is read paragraph by paragraph, so that memory does not grow with the
file. The common library loses clause numbers (mammoth) or needs a compiled XML parser (python-docx).
"""

from __future__ import annotations

import io
import zipfile
from typing import IO, ClassVar

from core.documents.charts import OfficeWalker
from core.documents.docx_lists import (
    WordLists,
    is_on,
    level_number,
    outline_heading,
    text_properties,
    value_of,
)
from core.documents.docx_symbols import symbol
from core.documents.fields import field_text
from core.documents.limits import (
    DamagedError,
    Gathered,
    NotWordError,
    Told,
    TooLongError,
    UnreadableError,
)
from core.documents.parts import (
    MOST_XML_BYTES,
    A,
    Element,
    Package,
    R,
    Relations,
    W,
    is_equation,
    read_elements,
    read_part,
    whole,
)
from core.documents.text import declared_in_text, decode
from core.documents.writer import LINK_FIELD, PLAIN, Block, Marks, Writer

_MAIN = "word/document.xml"
_NOTES = ("footnotes", "endnotes", "comments")
_VML = "urn:schemas-microsoft-com:vml "
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing "
_NUMBERS_OF_PAGES = frozenset(("PAGE", "NUMPAGES", "SECTIONPAGES"))
_PIECES = frozenset(("p", "tbl", "altChunk", "del", "moveFrom", "footnote", "endnote", "comment"))
_MOST_CHUNKS = 200


def docx_text(stream: IO[bytes], told: Told, gathered: Gathered, *, depth: int = 0) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    try:
        with Package(stream) as archive:
            main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
            if main not in archive.NameToInfo or not main.casefold().startswith("word/"):
                raise NotWordError
            writer = Writer(gathered)
            words = _Words(archive, main, writer, depth=depth)
            words.read(told)
            parts = words.relations
            for kind in _NOTES:
                part = parts.by_kind.get(kind, f"word/{kind}.xml")
                if part in archive.NameToInfo and writer.has_references(kind):
                    _Words(archive, part, writer, words.lists, kind=kind).read()
            for kind in ("header", "footer"):
                for part in parts.texts(kind, archive):
                    writer.open_note(f"[page {kind}]")
                    _Words(archive, part, writer, words.lists, kind=kind).read()
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
    return b"word/" in stream.read(4096).lower()


class _Field:
    """An open field: its instruction until `has_result`, and its form's box or choice."""

    def __init__(self, instruction: str = "", form: Element | None = None) -> None:
        self.instruction, self._form = instruction, form or Element("")
        self.has_result = self.is_link = self.is_silent = False

    def state(self) -> str:
        """The state of the form's box or choice, if the field has no result."""
        found = {each.tag: each for each in self._form.all()}
        if "checkBox" in found:
            return "[x]" if is_on(found.get("checked", found.get("default", Element("")))) else "[ ]"
        choices = [each.get(W + "val") for each in self._form.all("listEntry")]
        chosen = whole(found.get("result", found.get("default", Element(""))).get(W + "val"))
        return choices[min(chosen, len(choices) - 1)] if choices and not self.has_result else ""


class _Words(OfficeWalker):
    """Writes a part to `writer`. Of a part with notes, named by `kind`, only the notes referred to."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        part: str,
        writer: Writer,
        lists: WordLists | None = None,
        *,
        kind: str = "",
        depth: int = 0,
    ) -> None:
        super().__init__(archive, part, writer)
        self.lists = lists or WordLists(archive, self.relations.by_kind)
        self._part, self._kind, self._depth = part, kind, depth
        self._fields: list[_Field] = []
        self._chunks = self._muted = 0
        self._joins = False  # the next paragraph continues the last one, whose mark was deleted
        self._style = ""  # of the open paragraph
        self._description = ""  # of the open drawing

    def read(self, told: Told | None = None) -> None:
        for element in read_elements(self.archive, self._part, _PIECES, told=told):
            self.visit(element)

    def say(self, text: str) -> None:
        if not self._muted:
            super().say(text)

    def note(self, element: Element) -> None:
        if label := self.writer.referred(self._kind, element.get(W + "id")):
            author = element.get(W + "author")
            self.writer.open_note(f"{label} {author}:" if author else label)
            self.walk(element)
            self.writer.close_note()
            self._joins = False

    def reference(self, element: Element) -> None:
        if not self.marks.hidden:
            kind = element.tag.removesuffix("Reference") + "s"
            self.writer.words(self.writer.refer(kind, element.get(W + "id")))

    def deleted(self, element: Element) -> None:
        if count := sum(len(each.text().split()) for each in element.all("t", "delText")):
            self.writer.gathered.leave_out("deleted word", count)

    def _end_joined(self) -> None:
        if self._joins:
            self.writer.close_paragraph()
        self._joins = False

    def table(self, element: Element) -> None:
        self._end_joined()
        super().table(element)

    def row(self, element: Element) -> None:
        if element.child("trPr").child("del").name:
            self.deleted(element)
            return
        self.writer.open_row()
        if before := whole(value_of(element, "trPr", "gridBefore")):  # columns that the row leaves out
            self.writer.open_cell(before)
            self.writer.close_cell()
        self.walk(element)

    def cell(self, element: Element) -> None:
        self.writer.open_cell(whole(value_of(element, "tcPr", "gridSpan")) or 1)
        self.walk(element)
        self.writer.close_cell()
        self._joins = False

    def chunk(self, element: Element) -> None:
        """A part in another format."""
        self._end_joined()
        part = self.relations.by_id.get(element.get(R + "id"), "")
        text = ""
        if part in self.archive.NameToInfo and not self._depth and self._chunks < _MOST_CHUNKS:
            self._chunks += 1
            data = read_part(self.archive, part, MOST_XML_BYTES)
            text = _chunk_text(data, part, self.writer.gathered.inner())
        self.writer.put(Block("paragraph", text or "[object]"))
        if not text:
            self.writer.gathered.leave_out("object")

    def paragraph(self, element: Element) -> None:
        outer, self.marks = (self._style, self.marks), PLAIN
        properties = element.child("pPr")
        self._style = value_of(properties, "pStyle") or ""
        is_drop_cap = properties.child("framePr").get(W + "dropCap", "none") != "none"
        if not self._joins:
            self.writer.open_paragraph()
        self._joins = False
        self.walk(element)
        self._end_joined()  # of a text box
        if properties.child("rPr").child("del", "moveFrom").name or is_drop_cap:
            self._joins, (self._style, self.marks) = True, outer
            return
        # Also without a word in it, it counts.
        level = value_of(properties, "numPr", "ilvl")
        mark = self.lists.mark(
            self._style,
            value_of(properties, "numPr", "numId"),
            None if level is None else level_number(level),
        )
        outline = value_of(properties, "outlineLvl")
        heading = self.lists.heading_level(self._style) if outline is None else outline_heading(outline)
        number = f"{mark.text} " if mark and mark.text else ""
        if heading and not self.writer.in_cell:
            self.writer.close_paragraph("heading", f"{'#' * heading} {number}")
        elif mark:
            self.writer.close_paragraph("item", number, mark.level)
        else:
            self.writer.close_paragraph("paragraph", number)
        self._style, self.marks = outer

    def run(self, element: Element) -> None:
        """By its own properties, else those of its style, else of its paragraph's."""
        outer, properties = self.marks, element.child("rPr")
        of = {
            **self.lists.properties(self._style),
            **self.lists.properties(value_of(properties, "rStyle") or ""),
            **text_properties(properties),
        }
        script, raised = of.get("vertAlign", ""), of.get("position", "0")
        if not script.endswith("script"):
            is_moved = raised.lstrip("-").isdigit() and int(raised)
            script = "" if not is_moved else "sub" if raised.startswith("-") else "super"
        struck = "1" in (of.get("strike"), of.get("dstrike"))
        self.marks = Marks(script.removesuffix("script"), struck, of.get("vanish") == "1")
        self.walk(element)
        self.marks = outer

    def hyperlink(self, element: Element) -> None:
        self.writer.open_link(self.relations.external.get(element.get(R + "id"), ""))
        self.walk(element)
        self.writer.close_link()

    def ruby(self, element: Element) -> None:
        self.walk(element.child("rubyBase"))
        if reading := element.child("rt").line("t"):
            self.say(f"({reading})")

    # ---- fields

    def simple_field(self, element: Element) -> None:
        self._fields.append(_Field(element.get(W + "instr")))
        self._begin_result(self._fields[-1])
        self.walk(element)
        self._end_field(self._fields.pop())

    def field_mark(self, element: Element) -> None:
        kind = element.get(W + "fldCharType")
        if kind == "begin":
            self._fields.append(_Field(form=element))
        elif kind == "separate" and self._fields:
            self._begin_result(self._fields[-1])
        elif kind == "end" and self._fields:
            self._end_field(self._fields.pop())

    def instruction(self, element: Element) -> None:
        if self._fields and not self._fields[-1].has_result:
            self._fields[-1].instruction += element.text()

    def _begin_result(self, field: _Field) -> None:
        field.has_result = True
        if found := LINK_FIELD.search(field.instruction):
            field.is_link = True
            self.writer.open_link(found[1])
        # The number of the page of a header says nothing.
        is_number = field.instruction.split()[:1] and field.instruction.split()[0] in _NUMBERS_OF_PAGES
        field.is_silent = bool(is_number) and self._kind not in ("", *_NOTES)
        field.is_silent = field.is_silent or field_text(field.instruction) is not None
        self._muted += field.is_silent

    def _end_field(self, field: _Field) -> None:
        self._muted -= field.is_silent
        if field.is_link:
            self.writer.close_link()
        self.say(field_text(field.instruction) or field.state())

    # ---- drawings

    def drawing(self, element: Element) -> None:
        self.writer.words(f"\n{self.drawn(element)}\n")

    def picture(self, element: Element) -> None:
        self.writer.mark("picture", self._description)

    def described(self, element: Element) -> None:
        self._description = element.get("descr") or element.get("title") or element.get("alt")
        self.walk(element)

    def object(self, element: Element) -> None:
        for each in element.all("OLEObject"):
            self.writer.mark("equation" if is_equation(each.get("ProgID")) else "object")

    def picture_frame(self, element: Element) -> None:
        self.walk(element)
        self._description = ""

    actions: ClassVar = {
        **OfficeWalker.actions,
        **dict.fromkeys((W + "moveFrom", W + "pPr", W + "rPr", W + "tcPr", W + "trPr"), OfficeWalker.skip),
        **dict.fromkeys((f"{W}{each}Reference" for each in ("footnote", "endnote", "comment")), reference),
        **dict.fromkeys((W + each for each in ("footnote", "endnote", "comment")), note),
        **dict.fromkeys((W + each for each in ("drawing", "pict")), picture_frame),
        **dict.fromkeys((_VML + "imagedata", A + "blip"), picture),
        **dict.fromkeys((_VML + "shape", _DRAWING + "docPr"), described),
        _VML + "textpath": lambda self, element: self.writer.words(element.get("string")),
        W + "altChunk": chunk,
        **dict.fromkeys((W + "br", W + "cr"), OfficeWalker.line_break),
        W + "del": deleted,
        W + "fldChar": field_mark,
        W + "fldSimple": simple_field,
        W + "hyperlink": hyperlink,
        W + "instrText": instruction,
        W + "noBreakHyphen": lambda self, element: self.say("-"),
        W + "object": object,
        W + "p": paragraph,
        W + "r": run,
        W + "ruby": ruby,
        W + "sym": lambda self, element: self.say(symbol(element.get(W + "font"), element.get(W + "char"))),
        W + "t": OfficeWalker.spoken,
        **dict.fromkeys((W + "tab", W + "ptab"), OfficeWalker.tab),
        W + "tbl": table,
        W + "tc": cell,
        W + "tr": row,
    }  # fmt: skip


def _chunk_text(data: bytes, name: str, gathered: Gathered) -> str:
    """The text of a part, whose extension in `name` may show its format; empty if it cannot be read.

    Raises `TooLongError`.
    """
    from core.documents.html import declared_charset, html_text
    from core.documents.mail import mail_text
    from core.documents.rtf import rtf_text

    def told(done: int, total: int, unit: str) -> None:
        """Parts are short."""

    ending = name.rpartition(".")[2].lower()
    try:
        if data.startswith(b"PK"):
            return docx_text(io.BytesIO(data), told, gathered, depth=1)
        if data.lstrip().startswith(b"{\\rtf"):
            return rtf_text(data, told, gathered)
        if ending in ("mht", "mhtml"):
            return mail_text(data, gathered) or ""
        if ending in ("htm", "html", "xhtml", "dat") or b"<html" in data[:1024].lower():
            return html_text(decode(data, declared_charset(data)).text, told, gathered, titled=False)
        return decode(data, declared_in_text(data)).text.strip("\n")
    except TooLongError:
        raise
    except (UnreadableError, ValueError):
        return ""
