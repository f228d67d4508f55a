"""Word documents (.docx) to text: paragraphs, headings, lists, tables, equations and notes.

The text is the final version: insertions and moved text are in, deletions and the old places of moved text
are not. Footnotes and endnotes are numbered `[1]` where they are referred to and follow the text. Equations
become linear text (`docx_math`), symbols Unicode (`docx_symbols`), ruby text follows its base in brackets.
Charts and diagrams are read (`charts`). Comments, page headers and field codes are left out; hidden text is
left out and counted in a last line.

A .docx is a zip of XML parts; each is decompressed and parsed in pieces without a tree, so that memory does
not grow with the file. The common library loses clause numbers (mammoth) or needs a compiled XML parser
(python-docx).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import IO

from core.documents import strings
from core.documents.charts import drawing_id, drawing_text
from core.documents.docx_lists import WordLists, is_on, level_number
from core.documents.docx_math import MathReader
from core.documents.docx_symbols import scripted, symbol
from core.documents.limits import DamagedError, Gathered, NotWordError, Told, UnreadableError
from core.documents.parts import M, Package, Relations, W, parse_part

_MAIN = "word/document.xml"
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
# The XML of the longest books is a tenth of this; a zip can claim any size.
MOST_XML_BYTES = 256 * 1024 * 1024
# Of a list inside a list: enough for Markdown to see it under `-` and under `10.`
_INDENT = "    "
# Their content is not part of the final version, or not text.
_LEFT_OUT = frozenset(("del", "moveFrom", "pPrChange", "rPrChange", "instrText", "delInstrText"))
_MOST_SPAN = 64


def docx_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    try:
        with Package(stream) as archive:
            main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
            if main not in archive.NameToInfo or not main.startswith("word/"):
                raise NotWordError
            relations = Relations(archive, main)
            parts = relations.by_kind
            lists = WordLists(archive, parts)
            notes = Notes()
            words = _Words(gathered, lists, notes, cache(partial(drawing_text, archive, relations)))
            parse_part(archive, main, words, MOST_XML_BYTES, told)
            for kind in ("footnotes", "endnotes"):
                part = parts.get(kind, f"word/{kind}.xml")
                if part in archive.NameToInfo and any(of == kind for of, _ in notes.numbers):
                    notes.kind = kind
                    words = _Words(gathered, lists, notes, lambda identifier: "", notes_only=True)
                    parse_part(archive, part, words, MOST_XML_BYTES)
            if notes.hidden_words:
                gathered.add(f"\n\n{strings.hidden_text(notes.hidden_words)}")
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise (DamagedError if _begins_like_word(stream) else NotWordError) from error
    return _tidy(gathered.text())


class Notes:
    """Numbers of the notes that the text refers to, in order, by kind and id; the number of hidden words."""

    def __init__(self) -> None:
        self.hidden_words = 0
        self.numbers: dict[tuple[str, str], int] = {}
        self.kind = ""

    def refer(self, kind: str, note: str) -> int:
        """The number of a note, a new one at its first reference."""
        return self.numbers.setdefault((kind, note), len(self.numbers) + 1)


def _begins_like_word(stream: IO[bytes]) -> bool:
    """Names of the first parts of a zip without its central directory."""
    stream.seek(0)
    return b"word/" in stream.read(4096)


class _Paragraph:
    """An open paragraph: its style, list, level and text."""

    def __init__(self, most_characters: int) -> None:
        self.style = ""
        self.use: str | None = None
        self.level: int | None = None
        self.line = Gathered(most_characters)


class _Words:
    """Takes the elements of the main part, or of the notes, and writes to `gathered`."""

    def __init__(
        self,
        gathered: Gathered,
        lists: WordLists,
        notes: Notes,
        drawn: Callable[[str], str],
        *,
        notes_only: bool = False,
    ) -> None:
        """`drawn` returns the text of the chart or diagram with a relation's id."""
        self._gathered = gathered
        self._lists = lists
        self._notes = notes
        self._drawn = drawn
        # The innermost last: a text box is inside a paragraph and contains paragraphs.
        self._open: list[_Paragraph] = []
        self._in_list = False
        # How many are open: duplicates for older programs, parts that are left out, and cells.
        self._fallbacks = self._left_out = self._cells = 0
        self._in_text = False
        self._script = ""  # of the open run
        self._in_run = self._in_properties = False
        self._hides: bool | None = None  # the open run's own property; None if its style decides
        self._run_style = ""
        self._span = 0
        self._math: MathReader | None = None
        self._ruby: list[str] | None = None
        self._reading: list[str] = []
        # Outside of a note that is referred to nothing is read.
        self._silent = notes_only
        self._notes_only = notes_only

    def characters(self, text: str) -> None:
        if self._left_out or self._fallbacks or self._silent:
            return
        if self._math is not None:
            self._math.characters(text)
        elif self._in_text and self._open:
            self._add(scripted(text, self._script) if self._script else text)

    @property
    def _is_hidden(self) -> bool:
        """Whether Word does not show the open run."""
        if not self._in_run:
            return False
        if self._hides is not None:
            return self._hides
        return self._lists.hides(self._run_style) or self._lists.hides(self._open[-1].style)

    def _add(self, text: str) -> None:
        if self._open and self._is_hidden:
            self._notes.hidden_words += len(text.split())
        elif self._ruby is not None:
            self._ruby.append(text)
        elif self._open:
            self._open[-1].line.add(text)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == _FALLBACK:
            self._fallbacks += 1
        if self._fallbacks:
            return
        if name.startswith(M) and self._open and not (self._left_out or self._silent):
            self._start_math(name[len(M) :], attributes.get(M + "val", ""))
        identifier = drawing_id(name, attributes)
        if identifier and self._open and not (self._left_out or self._silent):
            self._add(f"\n{self._drawn(identifier)}\n")
        if not name.startswith(W):
            return
        tag = name[len(W) :]
        if tag in ("footnote", "endnote") and self._notes_only:
            self._start_note(attributes)
        if tag in _LEFT_OUT:
            self._left_out += 1
        if self._left_out or self._silent:
            return
        if tag == "p":
            self._open.append(_Paragraph(self._gathered.left))
        elif tag == "tc":
            self._cells += 1
            self._span = 1
        elif tag == "gridSpan" and self._cells:
            self._span = _count(attributes) or 1
        elif tag == "gridBefore":
            self._gathered.add("\t" * _count(attributes))  # columns that the row leaves out
        elif self._open:
            self._in_paragraph(self._open[-1], tag, attributes)

    def _start_math(self, tag: str, value: str) -> None:
        if self._math is not None:
            self._math.start(tag, value)
        elif tag == "oMath":
            self._math = MathReader()

    def _start_note(self, attributes: Mapping[str, str]) -> None:
        number = self._notes.numbers.get((self._notes.kind, attributes.get(W + "id", "")))
        self._silent = number is None
        if number is not None:
            self._gathered.add(f"\n[{number}] ")

    def _in_paragraph(self, paragraph: _Paragraph, tag: str, attributes: Mapping[str, str]) -> None:
        value = attributes.get(W + "val", "")
        match tag:
            case "r":
                self._in_run = True
                self._script, self._run_style, self._hides = "", "", None
            case "rPr":
                self._in_properties = self._in_run
            case "rStyle":
                self._run_style = value
            case "vanish" if self._in_properties:
                self._hides = is_on(attributes)
            case "vertAlign":
                self._script = value.removesuffix("script") if value in ("superscript", "subscript") else ""
            case "t":
                self._in_text = True
            case "tab" | "ptab":
                self._add("\t")
            case "br" | "cr":
                self._add("\n")
            case "noBreakHyphen":
                self._add("-")
            case "sym":
                self._add(symbol(attributes.get(W + "font", ""), attributes.get(W + "char", "")))
            case "footnoteReference" | "endnoteReference" if not self._is_hidden:
                kind = tag.removesuffix("Reference") + "s"
                self._add(f"[{self._notes.refer(kind, attributes.get(W + 'id', ''))}]")
            case "rt":
                self._ruby = []
            case "pStyle":
                paragraph.style = value
            case "numId":
                paragraph.use = value
            case "ilvl":
                paragraph.level = level_number(value)

    def end(self, name: str) -> None:
        if name == _FALLBACK:
            self._fallbacks -= 1
            return
        if self._fallbacks:
            return
        if name.startswith(M) and self._math is not None and self._math.end():
            line, self._math = self._math.line(), None
            self._add(line)
        if not name.startswith(W):
            return
        tag = name[len(W) :]
        if tag in _LEFT_OUT:
            self._left_out -= 1
            return
        if tag in ("footnote", "endnote") and self._notes_only:
            self._silent = True
        if self._left_out or self._silent:
            return
        if tag == "t":
            self._in_text = False
        elif tag == "rPr":
            self._in_properties = False
        elif tag == "r":
            self._in_run = False
        elif tag == "rt" and self._ruby is not None:
            self._reading, self._ruby = self._ruby, None
        elif tag == "rubyBase" and (reading := "".join(self._reading).strip()):
            self._reading = []
            self._add(f"({reading})")
        elif tag == "p" and self._open:
            self._paragraph(self._open.pop())
        elif tag == "tc":
            self._cells -= 1
            self._gathered.add("\t" * self._span)
            self._span = 1
        elif tag in ("tr", "tbl"):
            self._gathered.add("\n")

    def _paragraph(self, whole: _Paragraph) -> None:
        # Also without a word in it, it counts.
        mark = self._lists.mark(whole.style, whole.use, whole.level)
        text, level = whole.line.text(), self._lists.heading_level(whole.style)
        heading = "#" * level + " " if level else ""
        number = f"{mark.text} " if mark and mark.text else ""
        if self._cells:
            words = " ".join(text.split())
            self._gathered.add(f"{number}{words} " if words else " ")
        elif not (text := text.strip()):
            self._gathered.add("\n")
        elif mark and not heading:
            indent = _INDENT * mark.level
            lines = text.replace("\n", "\n" + indent + " " * len(number))
            self._gathered.add(f"{indent}{number}{lines}\n")
        else:
            # A list ends with an empty line, or the paragraph after it would be of its last item.
            self._gathered.add("\n" if self._in_list else "")
            self._gathered.add(f"{heading}{number}{text}\n\n")
        if not self._cells:
            self._in_list = bool(mark and text and not heading)


def _count(attributes: Mapping[str, str]) -> int:
    """A number of columns; 0 if it is not one."""
    value = attributes.get(W + "val", "")
    return min(int(value), _MOST_SPAN) if value.isascii() and value.isdigit() else 0


def _tidy(text: str) -> str:
    kept: list[str] = []
    for line in (line.rstrip() for line in text.replace(" \t", "\t").split("\n")):
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip("\n")
