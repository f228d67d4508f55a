"""Text files with a format of their own: tables with separators, subtitles, logs and notebooks. Pure.

A table (.csv, .tsv) becomes a line per row with tabs between cells, whatever its separator and quotes are.
Subtitles (.srt, .vtt) become a line per caption, such as `[12:03] Good evening.`, without numbers and markup.
Logs lose the control sequences of terminals. A Jupyter notebook becomes Markdown: text cells as they are,
code and text output as fenced code; pages and Markdown of outputs are read where their plain text is only the
name of an object; pictures are marked. A file without the format of its ending is left as it is.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from core.documents.limits import Gathered
from core.documents.sheet import one_line

# ---- tables

# Where several separators explain a file equally well, the first one wins.
_SEPARATORS = "\t;|,"
_SAMPLE_CHARACTERS = 64 * 1024
_SAMPLE_ROWS = 200
# Share of the rows that have the most common number of cells, at least.
_REGULAR = 0.8
_BROKEN_QUOTES = 0.05
# Excel names the separator in a first line.
_NAMED = re.compile(r"sep=(.)\n", re.IGNORECASE)
# A cell with more lines than this began with a quotation mark that is never closed.
_MOST_CELL_LINES = 500


class _Dialect(NamedTuple):
    separator: str
    quote: str
    escape: str | None

    def rows(self, text: str, *, strict: bool = False, quotes: bool = True) -> Iterator[list[str]]:
        """The cells of each row. Raises csv.Error if `strict`, for a quotation mark that is out of place."""
        return csv.reader(
            io.StringIO(text),
            delimiter=self.separator,
            quotechar=self.quote,
            escapechar=self.escape,
            doublequote=self.escape is None,
            quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
            strict=strict,
        )


def table_text(text: str, gathered: Gathered) -> str | None:
    """The rows of the table `text`; None if it has no separators. Raises `TooLongError`."""
    named = _NAMED.match(text)
    text = text[named.end() :] if named else text
    dialect = _dialect(text, named[1] if named else _SEPARATORS)
    if dialect is None:
        return None
    # The module has one limit for all its readers; the number of characters is limited here.
    csv.field_size_limit(sys.maxsize)
    quotes = not any(cell.count("\n") > _MOST_CELL_LINES for row in dialect.rows(text) for cell in row)
    for row in dialect.rows(text, quotes=quotes):
        gathered.add("\t".join(one_line(cell).strip(" ") for cell in row).rstrip("\t") + "\n")
    return gathered.text().strip("\n")


def _dialect(text: str, separators: str) -> _Dialect | None:
    """The separator, quotation mark and escape that give the most regular rows; None if none does."""
    sample = text[:_SAMPLE_CHARACTERS]
    if len(sample) < len(text):
        sample = sample[: sample.rfind("\n") + 1]
    dialects = (
        _Dialect(separator, quote, escape)
        for quote in "\"'"
        for separator in separators
        for escape in ((None, "\\") if f"\\{quote}" in sample else (None,))
    )
    regular, best = max(((_regularity(sample, each), each) for each in dialects), key=lambda each: each[0])
    return best if regular >= _REGULAR else None


def _regularity(sample: str, dialect: _Dialect) -> float:
    """Share of the sample's rows with the most common number of cells; 0 if that is a single one."""
    broken = 0.0
    try:
        rows = list(islice(dialect.rows(sample, strict=True), _SAMPLE_ROWS))
    except csv.Error:
        # A quotation mark inside of a cell, or a sample that ends in one.
        broken = _BROKEN_QUOTES
        rows = list(islice(dialect.rows(sample), _SAMPLE_ROWS))
    widths = Counter(len(row) for row in rows if row)
    if not widths:
        return 0.0
    width, count = widths.most_common(1)[0]
    return count / widths.total() - broken if width > 1 else 0.0


# ---- subtitles

_CLOCK = r"(?:\d{1,4}:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?"
_TIMES = re.compile(rf"\s*({_CLOCK})\s*-->\s*({_CLOCK})(?:\s.*)?")
_SPEAKER = re.compile(r"<v(?:\.[^ \t>]{0,200})?[ \t]+([^<>]{1,200})>")
_MARKUP = re.compile(
    r"</?(?:[biusvc]|font|ruby|rt|lang)(?:[ \t.][^<>]{0,200})?>|<\d[\d:.]{0,20}>|\{\\[^{}]{0,200}\}",
    re.IGNORECASE,
)
_WEBVTT = "WEBVTT"
# Blocks of a .vtt file that are not captions.
_NOT_CAPTIONS = ("NOTE", "STYLE", "REGION", _WEBVTT)


def subtitles_text(text: str, gathered: Gathered) -> str | None:
    """The captions of `text` with their times; None if it has none. Raises `TooLongError`."""
    last, end = "", ""
    has_captions = False
    is_webvtt = text.startswith(_WEBVTT)
    for times, lines in _captions(text, is_webvtt):
        if times is None:
            gathered.add("".join(f"{line}\n" for line in lines if not is_webvtt))
            continue
        has_captions = True
        words = [spoken for line in lines if (spoken := _spoken(line))]
        # Captions that roll up repeat the line before.
        while is_webvtt and times[1] == end and words and words[0] == last:
            del words[0]
        end = times[2]
        if words:
            gathered.add(f"[{_shown(times[1])}] {' '.join(words)}\n")
            last = words[-1]
    return gathered.text().strip("\n") if has_captions else None


def _captions(text: str, is_webvtt: bool) -> Iterator[tuple[re.Match[str] | None, list[str]]]:
    """Times and lines of each caption; first the lines before all captions, with None."""
    times: re.Match[str] | None = None
    lines: list[str] = []
    # Whether the line above is empty, the first of its block, or in a block without captions.
    empty, first, skipped = True, False, False
    for line in text.split("\n"):
        if found := _TIMES.fullmatch(line):
            # The line right above is the number or the name of this caption; .srt files may lack empty lines.
            if lines and (first or (not (empty or is_webvtt) and lines[-1].strip().isdigit())):
                lines.pop()
            yield times, lines
            times, lines, empty, first, skipped = found, [], False, False, False
        elif not line.strip():
            empty, first, skipped = True, False, False
        else:
            skipped = skipped or (empty and line.split()[0] in _NOT_CAPTIONS)
            first, empty = empty, False
            if not skipped:
                lines.append(line)
    yield times, lines


def _spoken(line: str) -> str:
    """The words of a line, without markup; a speaker's name comes before them."""
    line = _MARKUP.sub("", _SPEAKER.sub(r"\1: ", line))
    return " ".join(html.unescape(line).split())


def _shown(clock: str) -> str:
    """The time of a caption as `12:03`, or `1:12:03` after the first hour."""
    *hours, minutes, seconds = (int(part) for part in re.split("[.,]", clock)[0].split(":"))
    return f"{hours[0]}:{minutes:02}:{seconds:02}" if any(hours) else f"{minutes:02}:{seconds:02}"


# ---- logs

_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|[ -/]{1,2}[0-~]|[0-Z\\^-~])"
)


def log_text(text: str) -> str:
    """`text` without the control sequences of terminals: colors, cursor movements, titles."""
    return _TERMINAL.sub("", text) if "\x1b" in text else text


# ---- notebooks

# Python's text for an object without one: `<IPython.core.display.HTML object>`.
_NAME_OF_OBJECT = re.compile(r"<[^<>\n]{1,300}>")
_FENCES = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


def notebook_text(source: str, gathered: Gathered) -> str | None:
    """The cells in order; None if `source` is not a notebook of version 3 or 4. Raises `TooLongError`."""
    try:
        book = json.loads(source)
    except (ValueError, RecursionError):
        return None
    cells = _cells(book)
    if cells is None:
        return None
    language = _language(book.get("metadata"))
    for cell in cells:
        is_code = cell.get("cell_type") == "code"
        text = _text(cell.get("source", cell.get("input"))).strip("\n")
        level = cell.get("level") if cell.get("cell_type") == "heading" else None
        text = f"{'#' * min(level, 6)} {text}" if isinstance(level, int) else text
        if text.strip():
            gathered.add(f"{_fenced(text, language) if is_code else text}\n\n")
        outputs = cell.get("outputs") if is_code else None
        for output in outputs if isinstance(outputs, list) else ():
            for piece in _output_pieces(output, gathered) if isinstance(output, dict) else ():
                gathered.add(f"{piece}\n\n")
    return gathered.text().strip("\n")


def _output_pieces(output: dict[str, Any], gathered: Gathered) -> Iterator[str]:
    """The mark of a picture and the text of an output."""
    data = output.get("data")
    data = data if isinstance(data, dict) else {}
    if pictures := [str(kind) for kind in data if str(kind).startswith("image/")]:
        gathered.leave_out("picture")
        description = _description(output.get("metadata"), pictures)
        yield f"[picture: {description}]" if description else "[picture]"
    if rich := _rich_output(data, gathered):
        yield rich
        return
    shown = _output(output).strip("\n")
    if shown and not (pictures and _NAME_OF_OBJECT.fullmatch(shown)):
        yield _fenced(shown, "")


def _description(metadata: Any, kinds: list[str]) -> str:
    """The alternative text of a picture that an output has in one of `kinds`."""
    of = [metadata.get(kind) for kind in kinds] + [metadata] if isinstance(metadata, dict) else []
    found = (each.get("alt") for each in of if isinstance(each, dict))
    return next((" ".join(each.split()) for each in found if isinstance(each, str) and each.strip()), "")


def _rich_output(data: dict[str, Any], gathered: Gathered) -> str:
    """An output as Markdown, formulas or a page; empty if its plain text is more than an object's name."""
    plain = _text(data.get("text/plain")).strip()
    if plain and not _NAME_OF_OBJECT.fullmatch(plain):
        return ""
    if written := _text(data.get("text/markdown")) or _text(data.get("text/latex")):
        return written.strip("\n")
    if markup := _text(data.get("text/html")):
        from core.documents.html import html_text

        return html_text(markup, lambda done, total, unit: None, gathered.inner(), titled=False)
    return ""


def _cells(book: Any) -> list[dict[str, Any]] | None:
    """The cells of a notebook; version 3 has them in worksheets."""
    if not isinstance(book, dict):
        return None
    sheets = [book] if "cells" in book else book.get("worksheets")
    if not isinstance(sheets, list) or not sheets:
        return None
    cells: list[Any] = []
    for sheet in sheets:
        inside = sheet.get("cells") if isinstance(sheet, dict) else None
        if not isinstance(inside, list):
            return None
        cells += inside
    return cells if all(isinstance(cell, dict) for cell in cells) else None


def _language(metadata: Any) -> str:
    about = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = about.get("name") if isinstance(about, dict) else None
    return name if isinstance(name, str) and name.isalnum() else "python"


def _output(output: Any) -> str:
    """An output's text: the printed text, a result's plain text, or an error's last line."""
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    if isinstance(data, dict):
        return log_text(_text(data.get("text/plain")))
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    return log_text(_text(output.get("text")))


def _text(value: Any) -> str:
    """A text, which a notebook may have as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _fenced(text: str, language: str) -> str:
    longest = max((len(found[1]) for found in _FENCES.finditer(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


# By the kinds of `types.KINDS_BY_ENDING`; None for a text without the format.
READERS: dict[str, Callable[[str, Gathered], str | None]] = {
    "table": table_text,
    "subtitles": subtitles_text,
    "log": lambda text, gathered: log_text(text),
    "notebook": notebook_text,
}
