"""Word documents (.docx) to text: paragraphs, headings, lists and tables of the main text.

A .docx is a zip with one XML file that holds the text. It is unpacked and parsed a piece at a time
and no tree is built, so that what it takes does not grow with it. Comments, footnotes, page headers
and deleted passages are not the text and are left out. Own code, because the usual library brings a
compiled XML parser for what are three pages of code here.
"""

from __future__ import annotations

import zipfile
from typing import IO

from core.documents.docx_lists import WordLists, level_number
from core.documents.docx_part import W, parse_part
from core.documents.limits import DamagedError, Gathered, NotWordError, Told, UnreadableError

_MAIN = "word/document.xml"
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
# The XML of the longest books is a tenth of this; a zip can claim any size.
MOST_XML_BYTES = 256 * 1024 * 1024
# Of a list inside a list: enough for Markdown to see it under `-` and under `10.`
_INDENT = "    "


def docx_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    try:
        with zipfile.ZipFile(stream) as archive:
            if _MAIN not in archive.NameToInfo:
                raise NotWordError
            words = _Words(gathered, WordLists(archive))
            parse_part(archive, _MAIN, words, MOST_XML_BYTES, told)
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise (DamagedError if _begins_like_word(stream) else NotWordError) from error
    return _tidy(gathered.text())


def _begins_like_word(stream: IO[bytes]) -> bool:
    """Of a zip whose table of contents is gone: what its first parts are called."""
    stream.seek(0)
    return b"word/" in stream.read(4096)


class _Paragraph:
    """One that is open: its style, its list, its level there, its text so far."""

    def __init__(self, most_characters: int) -> None:
        self.style = ""
        self.use: str | None = None
        self.level: int | None = None
        self.line = Gathered(most_characters)


class _Words:
    """Takes the main part's elements and writes to `gathered`."""

    def __init__(self, gathered: Gathered, lists: WordLists) -> None:
        self._gathered = gathered
        self._lists = lists
        # The innermost last: a text box is inside a paragraph and has paragraphs of its own.
        self._open: list[_Paragraph] = []
        self._in_list = False
        # How many are open: what older programs show instead (the same words once more), what
        # paragraphs looked like before a tracked change, and cells.
        self._fallbacks = self._changes = self._cells = 0
        self._in_text = False

    def characters(self, text: str) -> None:
        if self._in_text and self._open:
            self._open[-1].line.add(text)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == _FALLBACK:
            self._fallbacks += 1
        if self._fallbacks or not name.startswith(W):
            return
        tag = name[len(W) :]
        if tag == "p":
            self._open.append(_Paragraph(self._gathered.left))
        elif tag == "tc":
            self._cells += 1
        elif tag == "pPrChange":
            self._changes += 1
        elif self._open and not self._changes:
            self._in_paragraph(self._open[-1], tag, attributes.get(W + "val", ""))

    def _in_paragraph(self, paragraph: _Paragraph, tag: str, value: str) -> None:
        if tag == "t":
            self._in_text = True
        elif tag == "tab":
            paragraph.line.add("\t")
        elif tag in ("br", "cr"):
            paragraph.line.add("\n")
        elif tag == "pStyle":
            paragraph.style = value
        elif tag == "numId":
            paragraph.use = value
        elif tag == "ilvl":
            paragraph.level = level_number(value)

    def end(self, name: str) -> None:
        if name == _FALLBACK:
            self._fallbacks -= 1
            return
        if self._fallbacks or not name.startswith(W):
            return
        tag = name[len(W) :]
        if tag == "t":
            self._in_text = False
        elif tag == "p" and self._open:
            self._paragraph(self._open.pop())
        elif tag == "pPrChange":
            self._changes -= 1
        elif tag == "tc":
            self._cells -= 1
            self._gathered.add("\t")
        elif tag in ("tr", "tbl"):
            self._gathered.add("\n")

    def _paragraph(self, whole: _Paragraph) -> None:
        # Also without a word in it, it counts.
        mark = self._lists.mark(whole.style, whole.use, whole.level)
        text, heading = whole.line.text(), _heading(whole.style)
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


def _heading(style: str) -> str:
    if style == "Title":
        return "# "
    level = style.removeprefix("Heading")
    return "#" * int(level) + " " if level in ("1", "2", "3", "4", "5", "6") and style != level else ""


def _tidy(text: str) -> str:
    kept: list[str] = []
    for line in (line.rstrip() for line in text.replace(" \t", "\t").split("\n")):
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip("\n")
