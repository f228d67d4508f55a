"""Writer: the model of a formatted document that all readers fill, and the rules that turn it into text.

A document is a stack of stories: the text itself and the cells, notes and boxes that are open inside it. A
story has paragraphs of runs with marks and links, and tables. The rules are the same for all formats:

    raised, lowered   10 and a raised 5 are 10⁵ (`scripted`)
    struck out        ~~5,000~~ 4,200
    hidden            left out; the words are counted in a last line
    links             form (https://files.example/form.pdf), unless the text names the address
    tables            a row is a line with tabs between cells; a table in a cell is `Oven | 1; Chair | 4`
    code in cells     keeps its lines and indents
    notes, comments   [1] and [comment 1], which follow the text
    parts without a text  a mark such as [picture], counted as left out
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from core.documents import strings
from core.documents.limits import Gathered, Kind, TooLongError

INDENT = "    "
DEEPEST = 8
_MOST_SPAN = 64  # columns of a cell, or equal cells
# Tables inside each other; a deeper one follows the cell that it is in.
_MOST_NESTED = 30
# Addresses that lead out of the file; others mean nothing once the text is alone.
_OUTSIDE = re.compile(r"(?:https?|ftps?|mailto|tel|sips?|news|file):", re.IGNORECASE)
LINK_FIELD = re.compile(r'HYPERLINK\s+"?([^"\s]+)', re.IGNORECASE)  # the instruction of Word's
# Links of newsletters carry a record of their reader in the query.
_MOST_ADDRESS = 300
# That are open inside each other and get their text.
_MOST_LINKS = 4
_MARK = re.compile(r"\[(?:picture|object|equation)[^\]]*\]")
_PAGE_NUMBER = re.compile(
    r"(?:page|seite|pagina|página|sida|side|strona|p\.|s\.)?[\W\d]*(?:of|von|de|di|av|z)?[\W\d]*",
    re.IGNORECASE,
)
_SOFT_HYPHEN = "\u00ad"
# Cells of a table of data that holds lists or tables are no longer than this; longer ones arrange a page.
_MOST_CELL, _MOST_HEADED_CELL = 300, 2_000

_SCRIPT = re.compile(r"[-+\u2212]?\d[\d.,/\u2013-]*|(?=.*[\d+\-\u2212])[\dn+\-\u2212=()]+")
SMALL = {
    "super": str.maketrans("0123456789+-\u2212=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ"),
    "sub": str.maketrans("0123456789+-\u2212=()n", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₙ"),
}
_TERM = re.compile(r"(?=.*[\d+\-\u2212*/])[\w+\-\u2212*/=]{2,12}")


class Marks(NamedTuple):
    """How a run differs from plain text; `script` is `super`, `sub` or empty."""

    script: str = ""
    struck: bool = False
    hidden: bool = False


PLAIN = Marks()
Run = tuple[str, Marks]


def scripted(text: str, script: str) -> str:
    """Raised ("super") or lowered ("sub") text: small digits for numbers, `^(k+1)` for terms.

    Otherwise 10³ would read as 103. Ordinals and words are clear without.
    """
    core = text.strip()
    if _SCRIPT.fullmatch(core):
        return text.translate(SMALL[script])
    if _TERM.fullmatch(core) and not core[0].isdigit():
        return text.replace(core, f"{'^' if script == 'super' else '_'}({core})")
    return text


def numbers_page(text: str) -> bool:
    """Whether a page header or footer has only the page number."""
    return bool(_PAGE_NUMBER.fullmatch(text))


def lowered(runs: Iterable[Run]) -> str:
    """The text of `runs` by the rules for marks; hidden ones are left out."""
    pieces: list[str] = []
    seen = (run for run in runs if not run[1].hidden)
    joined = [("".join(text for text, _ in same), marks) for marks, same in groupby(seen, lambda run: run[1])]
    for is_struck, same in groupby(joined, lambda run: run[1].struck):
        text = "".join(scripted(text, marks.script) if marks.script else text for text, marks in same)
        core = text.strip()
        if is_struck and core:
            before, _, after = text.partition(core)
            text = f"{before}~~{core}~~{after}"
        pieces.append(text)
    return "".join(pieces).replace(_SOFT_HYPHEN, "")


def outside_address(address: str) -> str:
    """The address of a link that leads out of the file; empty for any other."""
    address = "".join(address.split())
    if not _OUTSIDE.match(address):
        return ""
    address = address[7:].partition("?")[0] if address[:7].lower() == "mailto:" else address
    if len(address) > _MOST_ADDRESS:
        address = f"{address.partition('?')[0][:_MOST_ADDRESS]}?…"
    return address


def with_address(text: str, address: str) -> str:
    """The text of a link with its address, unless it names it."""
    address = outside_address(address)
    core = text.strip()
    if not core or not address or address.partition("://")[2].rstrip("/").casefold() in core.casefold():
        return text if not address or "://" in address or address in core else f"{text} ({address})"
    before, _, after = text.partition(core)
    return f"{before}{core} ({address}){after}"


class Block(NamedTuple):
    """A finished paragraph or table. `kind`: paragraph, heading, item, line, code or table."""

    kind: str
    text: str
    apart: bool = False


class _Table:
    """An open table. `rich`: a cell holds lists, headings or tables; `headed`: it has a head or a caption."""

    def __init__(self) -> None:
        self.rows: list[list[_Story]] = [[]]
        self.rich = self.headed = False
        self._covered: dict[int, int] = {}  # the last row, from 1, that a cell above covers, by column
        self._row_ended = False

    def open_row(self) -> None:
        if self.rows[-1] or self._covered:
            self.rows.append([])
        self._row_ended = False

    def end_row(self, *, ends_group: bool) -> None:
        """A cell covers only rows of its group."""
        self._row_ended = True
        if ends_group:
            self._covered.clear()

    def open_cell(self, columns: int, rows: int, repeats: int) -> _Story:
        if self._row_ended:
            self.open_row()
        row, story = self.rows[-1], _Story(in_cell=True)
        while self._covered.get(len(row), 0) >= len(self.rows):
            row.append(_Story())
        for offset in range(min(columns, _MOST_SPAN)):
            if rows > 1:
                self._covered[len(row)] = len(self.rows) + rows - 1
            row.append(_Story() if offset else story)
        row += [story] * (min(repeats, _MOST_SPAN) - 1)
        return story

    def arranges(self) -> bool:
        """Whether the table arranges a page, so that its cells are blocks of the text."""
        cells = [cell for row in self.rows for cell in row if cell.blocks]
        if max(map(len, self.rows)) < 2:
            return any(len(cell.blocks) > 1 or cell.blocks[0].kind in ("table", "code") for cell in cells)
        if not self.rich:
            return False
        longest = max((sum(len(block.text) for block in cell.blocks) for cell in cells), default=0)
        if self.headed:
            return longest > _MOST_HEADED_CELL
        has_headings = any(block.kind == "heading" for cell in cells for block in cell.blocks)
        full = sum(sum(bool(cell.blocks) for cell in row) > 1 for row in self.rows)
        has_code = any(block.kind == "code" for cell in cells for block in cell.blocks)
        return (full < 2 and not has_code) or longest > _MOST_CELL or has_headings

    def lines(self) -> Iterator[str]:
        for row in self.rows:
            coded = [cell.code() for cell in row]
            if not any("\n" in code for code in coded):
                yield "\t".join(code or cell.line() for code, cell in zip(coded, row)).rstrip()
                continue
            for code, cell in zip(coded, row):
                text = code or cell.line()
                if text and not _counts_lines(text, coded):
                    yield text


def _counts_lines(text: str, codes: list[str]) -> bool:
    """Whether a cell only numbers the lines of an adjacent cell, one of `codes`."""
    numbers = text.split()
    if not all(number.isdecimal() and len(number) < 9 for number in numbers):
        return False
    first = int(numbers[0])
    counts = [*map(int, numbers)] == [*range(first, first + len(numbers))]
    return counts and any(1 <= code.count("\n") < len(numbers) for code in codes if code != text)


class _Story:
    """A separate text: the document, a cell or a note."""

    def __init__(self, label: str = "", *, in_cell: bool = False) -> None:
        self.label, self.in_cell = label, in_cell
        self.blocks: list[Block] = []
        self.paragraphs: list[list[Run]] = []  # open, the innermost last
        self.tables: list[_Table] = []  # open

    def line(self) -> str:
        """The story on one line."""
        texts = (
            block.text.replace("\t", " | ").replace("\n", "; ") if block.kind == "table" else block.text
            for block in self.blocks
        )
        return " ".join(" ".join(texts).split())

    def code(self) -> str:
        """The story's lines if one of them is code; empty if none is."""
        kinds = {block.kind for block in self.blocks}
        is_code = "code" in kinds and kinds <= {"code", "paragraph", "line"}
        return "\n".join(block.text for block in self.blocks).replace("\t", INDENT) if is_code else ""


class Writer:
    """Takes a document in the order of reading and writes its text to `gathered`."""

    def __init__(self, gathered: Gathered) -> None:
        self.gathered = gathered
        self.says = False  # whether there is text other than marks
        self._left = gathered.left
        self._stories = [_Story()]
        self._last = ""  # the kind of the last block
        self._apart = False
        self._notes: list[str] = []
        self._numbers: dict[tuple[str, str], str] = {}
        self._counts: dict[bool, int] = {False: 0, True: 0}
        self._links: list[tuple[str, list[str]]] = []
        self._hidden_words = 0

    # ---- runs

    def words(self, text: str, marks: Marks = PLAIN) -> None:
        """A piece of the open paragraph. Raises `TooLongError`."""
        if marks.hidden:
            self._hidden_words += len(text.split())
            return
        self._left -= len(text)
        if self._left < 0:
            raise TooLongError
        story = self._stories[-1]
        if not story.paragraphs:
            story.paragraphs.append([])
        story.paragraphs[-1].append((text, marks))
        for _, said in self._links[-_MOST_LINKS:]:
            said.append(text)

    def mark(self, kind: Kind, description: str = "") -> None:
        """A part that has no text, such as a picture: a mark in its place."""
        description = " ".join(description.split())
        self.words(f"[{kind}: {description}]" if description else f"[{kind}]")
        self.gathered.leave_out(kind)

    def open_link(self, address: str) -> None:
        self._links.append((address, []))

    def close_link(self) -> None:
        """The link's text is followed by its address."""
        if not self._links:
            return
        address, said = self._links.pop()
        text = "".join(said)
        if added := with_address(text.rstrip(), address)[len(text.rstrip()) :]:
            self.words(added + text[len(text.rstrip()) :] if text != text.rstrip() else added)

    # ---- paragraphs

    @property
    def has_words(self) -> bool:
        """Whether the open paragraph has a word."""
        open_ones = self._stories[-1].paragraphs
        return bool(open_ones) and any(text and not text.isspace() for text, _ in open_ones[-1])

    def open_paragraph(self) -> None:
        """A paragraph, perhaps in a text box inside of another."""
        self._stories[-1].paragraphs.append([])

    def take_paragraph(self) -> str:
        """The text of the innermost open paragraph, which ends without being written."""
        open_ones = self._stories[-1].paragraphs
        return lowered(open_ones.pop()) if open_ones else ""

    def close_paragraph(
        self, kind: str = "paragraph", mark: str = "", level: int = 0, *, flows: bool = False
    ) -> str:
        """Write the innermost open paragraph. `mark` is a number, a bullet or the signs of a heading.

        In a text that `flows`, white space says nothing.
        """
        text = self.take_paragraph()
        text = " ".join(text.split()) if flows else text
        if kind == "code":
            self.put(Block(kind, f"{mark}{text.strip(chr(10)).rstrip()}"))
            return text
        # Indented lines in a cell are code; elsewhere indents of lines say nothing.
        if (
            len(self._stories) > 1
            and not mark
            and text[:1] in " \t\n"
            and re.search(r"(?m)^(?: {2}|\t)\s*\S", text)
        ):
            self.put(Block("code", text.strip("\n").rstrip()))
            return text
        text = "\n".join(line.rstrip() for line in text.strip().split("\n"))
        if not text:
            self._apart = self._apart or kind != "line"
            return ""
        indent = INDENT * min(level, DEEPEST)
        if kind == "item":
            text = text.replace("\n", f"\n{indent}{' ' * len(mark)}")
        self.put(Block(kind, f"{indent}{mark}{text}"))
        return text

    def apart(self) -> None:
        """An empty line separates the next text from the one before."""
        self._apart = True

    def put(self, block: Block) -> None:
        """Write a finished block into the innermost story."""
        if not block.text.strip():
            return
        self.says = self.says or bool(_MARK.sub("", block.text).strip())
        story = self._stories[-1]
        apart = self._apart or block.apart
        self._apart = False
        if len(self._stories) > 1:
            story.blocks.append(block._replace(apart=apart))
            return
        close = block.kind in ("item", "line", "code") and (
            block.kind == self._last or {block.kind, self._last} <= {"line", "code"}
        )
        gap = "" if not self._last else "\n" if close and not apart else "\n\n"
        self._last = block.kind
        self.gathered.add(gap + block.text)

    # ---- tables

    @property
    def table(self) -> _Table | None:
        """The innermost open table of the innermost story."""
        tables = self._stories[-1].tables
        return tables[-1] if tables else None

    @property
    def outer_table(self) -> _Table | None:
        """The table of the open cell."""
        return self._stories[-2].tables[-1] if self.in_cell else None

    @property
    def in_cell(self) -> bool:
        return self._stories[-1].in_cell

    def open_table(self) -> None:
        while len(self._stories) > _MOST_NESTED and self.in_cell:
            self.close_cell()
        self._stories[-1].tables.append(_Table())

    def open_row(self) -> None:
        if self.table:
            self.table.open_row()

    def open_cell(self, columns: int = 1, rows: int = 1, repeats: int = 1) -> None:
        """A cell over `columns` and `rows`; `repeats` equal ones are in the row."""
        if self.table is None:
            self.open_table()
        assert self.table
        self._stories.append(self.table.open_cell(columns, rows, repeats))
        self._apart = False

    def close_cell(self) -> None:
        """The open cell ends."""
        if self.in_cell:
            self._end_story()
            self._stories.pop()
            self._apart = False

    def _end_story(self) -> None:
        """Ends the open elements of the innermost story."""
        while self.table:
            self.close_table()
        while self._stories[-1].paragraphs:
            self.close_paragraph("line")

    def close_table(self) -> None:
        tables = self._stories[-1].tables
        if not tables:
            return
        table = tables.pop()
        if table.arranges():
            for cell in (cell for row in table.rows for cell in row):
                self._apart = True
                for block in cell.blocks:
                    self.put(block)
            self._apart = True
        else:
            self.put(Block("table", "\n".join(filter(None, table.lines())), True))

    # ---- notes

    def refer(self, kind: str, key: str = "") -> str:
        """The number of a note, `[1]`, or of a comment, `[comment 1]`; a new one at its first reference."""
        key = key or str(len(self._numbers))
        if (kind, key) not in self._numbers:
            is_comment = kind == "comments"
            self._counts[is_comment] += 1
            number = self._counts[is_comment]
            self._numbers[kind, key] = f"[comment {number}]" if is_comment else f"[{number}]"
        return self._numbers[kind, key]

    def referred(self, kind: str, key: str) -> str:
        """The number of a note that the text refers to; empty if it does not."""
        return self._numbers.get((kind, key), "")

    def has_references(self, kind: str) -> bool:
        return any(of == kind for of, _ in self._numbers)

    def open_note(self, label: str) -> None:
        """Write the following text to the note `label`, until it is closed."""
        self._stories.append(_Story(label))

    def close_note(self) -> None:
        """The open note ends."""
        while self.in_cell:
            self.close_cell()
        self._end_story()
        if len(self._stories) < 2:
            return
        story = self._stories.pop()
        self._apart = False
        self.add_note(story.label, story.line())

    def add_note(self, label: str, text: str) -> None:
        """A note on one line, which follows the text; page headers that repeat are one."""
        if (
            text
            and f"{label} {text}" not in self._notes
            and not (label[1:5] == "page" and numbers_page(text))
        ):
            self._notes.append(f"{label} {text}")

    def text(self) -> str:
        """The whole text: open elements end, and notes and the count of hidden words follow."""
        while len(self._stories) > 1:
            if self.in_cell:
                self.close_cell()
            else:
                self.close_note()
        self._end_story()
        self.put(Block("notes", "\n".join(self._notes)))
        if self._hidden_words:
            self.gathered.leave_out("hidden word", self._hidden_words)
            if self.says:
                self.put(Block("hidden", strings.hidden_text(self._hidden_words)))
        return self.gathered.text().strip("\n")
