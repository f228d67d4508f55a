"""Word documents (.docx) to text: paragraphs, headings, lists and tables of the main text.

A .docx is a zip with one XML file that holds the text; it is read as a stream, so a long one
takes little memory and can be given up at any paragraph. Comments, footnotes, page headers and
deleted passages are not the text and are left out. Own code, because the usual library brings a
compiled XML parser for what is a page of code here.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

_MAIN = "word/document.xml"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
# The XML of the longest books is a tenth of this; a zip can claim any size.
MAX_XML_BYTES = 256 * 1024 * 1024


class DocxError(Exception):
    """It is not a readable Word document; the message says why."""


def is_docx(path: Path) -> bool:
    """Whether it is a zip with Word's main part. Raises OSError."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _MAIN in archive.namelist()
    except zipfile.BadZipFile:
        return False


def docx_text(path: Path, progressed: Callable[[float], None]) -> str:
    """The document's text. `progressed` gets the fraction done and may raise to give up.

    Raises `DocxError`, OSError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(_MAIN)
            if info.flag_bits & 1:
                raise DocxError("it is encrypted")
            if info.file_size > MAX_XML_BYTES:
                raise DocxError("it is too large")
            with archive.open(info) as stream:
                return _read(stream, info.file_size, progressed)
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, EOFError, NotImplementedError) as error:
        raise DocxError("it is damaged") from error


def _read(stream: IO[bytes], size_bytes: int, progressed: Callable[[float], None]) -> str:
    done: list[str] = []
    line: list[str] = []
    mark, hidden, cells = "", 0, 0
    for event, element in ElementTree.iterparse(stream, ("start", "end")):
        tag = element.tag
        if tag == _FALLBACK:
            # What older programs show instead: the same words once more.
            hidden += 1 if event == "start" else -1
        if event == "start":
            if tag == _W + "tc":
                cells += 1
            continue
        if hidden:
            continue
        if tag == _W + "t":
            line.append(element.text or "")
        elif tag == _W + "tab":
            line.append("\t")
        elif tag in (_W + "br", _W + "cr"):
            line.append("\n")
        elif tag == _W + "pStyle":
            mark = _heading(element.get(_W + "val", "")) or mark
        elif tag == _W + "numPr":
            mark = mark or "- "
        elif tag == _W + "p":
            done.append(_paragraph(mark, "".join(line), in_cell=cells > 0))
            mark = ""
            line.clear()
            element.clear()
            progressed(stream.tell() / max(1, size_bytes))
        elif tag == _W + "tc":
            cells -= 1
            done.append("\t")
        elif tag == _W + "tr":
            done.append("\n")
            element.clear()
        elif tag == _W + "tbl":
            done.append("\n")
    return _tidy("".join(done))


def _paragraph(mark: str, text: str, *, in_cell: bool) -> str:
    if in_cell:
        return " ".join(text.split()) + " "
    text = text.strip()
    return f"{mark}{text}\n\n" if text and not mark.startswith("- ") else f"{mark}{text}\n" if text else "\n"


def _heading(style: str) -> str:
    if style == "Title":
        return "# "
    level = style.removeprefix("Heading")
    return "#" * int(level) + " " if style != level and level.isdigit() and 0 < int(level) < 7 else ""


def _tidy(text: str) -> str:
    kept: list[str] = []
    for line in (line.rstrip() for line in text.replace(" \t", "\t").split("\n")):
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip()
