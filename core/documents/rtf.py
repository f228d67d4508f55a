"""Rich text (.rtf) to text, in one pass over its control words. Pure.

Follows Microsoft's Rich Text Format specification 1.9.1. Paragraphs have an empty line between them, headings
`#` marks by their outline level, items the number or bullet that the file stores. A row of a table is a line
with tabs between cells; the positions of the cells keep merged ones in their columns. Bytes are decoded with
the code page of their font, together, as the second byte of a character may be an ordinary letter. Text
marked as hidden is left out and counted; deleted text is left out. Notes and comments are numbered and follow
the text, as do page headers and footers. Equations become linear text; pictures and objects are marked.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from typing import NamedTuple

from core.documents import strings
from core.documents.docx_symbols import symbol
from core.documents.equations import equation_line
from core.documents.fields import field_text
from core.documents.limits import Gathered, Told
from core.documents.parts import Builder, Element, is_equation
from core.documents.writer import LINK_FIELD, Block, Marks, Run, Writer, lowered, with_address

_TOKEN = re.compile(
    rb"\\(?:([A-Za-z]{1,32})(?:(-?[0-9]{1,10})[0-9]*)? ?|'([0-9A-Fa-f]{2})|([^A-Za-z]))"
    rb"|([{}])|([^\\{}\r\n\0]+)|[\r\n\0]+",
    re.DOTALL,
)
_SKIPPED_TEXT = re.compile(rb"[^\\{}]+")
# Destinations without text of the page. Unknown ones are marked with `\*`.
_LEFT_OUT = frozenset((
    "aftncn", "aftnsep", "aftnsepc", "atnauthor", "atndate", "atnid", "atnref", "bkmkend", "bkmkstart",
    "colortbl", "datafield", "do", "falt", "fchars", "filetbl", "ftncn", "ftnsep", "ftnsepc", "generator",
    "info", "lchars", "listoverridetable", "listtable", "mmathPict", "mmathPr", "nonesttables", "nonshppict",
    "objdata", "objname", "panose", "pict", "pntxta", "shppict", "pntxtb", "private", "revtbl", "rxe",
    "shprslt", "sp", "stylesheet", "tc", "tcn", "template", "themedata", "txe", "upr", "xe",
))  # fmt: skip
# Marked destinations that are read; old programs mark the styles of characters and rows of tables too.
_KEPT = frozenset((
    "annotation", "cs", "ffl", "fldinst", "footnote", "formfield", "moMath", "moMathPara", "nesttableprops",
    "objclass", "shpinst", "shptxt", "ts", "ud",
))  # fmt: skip
# Destinations that are separate texts, and how they are written.
_STORIES = {
    "annotation": "comment", "ffl": "choice", "fldinst": "instruction", "footnote": "note",
    "listtext": "mark", "objclass": "object", "NeXTGraphic": "graphic", "pntext": "mark", "shptxt": "box",
    **dict.fromkeys(("header", "headerf", "headerl", "headerr"), "header"),
    **dict.fromkeys(("footer", "footerf", "footerl", "footerr"), "footer"),
}  # fmt: skip
# Elements of Office Math, which the specification writes with an m before them.
_MATH = frozenset((
    "moMath", "mr", "mf", "mfPr", "mtype", "mnum", "mden", "msSup", "msSub", "msSubSup", "msPre", "me",
    "msup", "msub", "mrad", "mradPr", "mdeg", "mnary", "mnaryPr", "mchr", "md", "mdPr", "mbegChr", "mendChr",
    "msepChr", "mfunc", "mfName", "mlimLow", "mlimUpp", "mlim", "macc", "maccPr", "mbar", "mbarPr", "mpos",
    "mm", "mmr", "meqArr", "mctrlPr", "mrPr",
))  # fmt: skip
_CHARACTERS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’",
    "ldblquote": "“", "rdblquote": "”", "emspace": "\u2003", "enspace": "\u2002", "qmspace": "\u2005",
    "zwj": "\u200d", "zwnj": "\u200c", "ltrmark": "\u200e", "rtlmark": "\u200f", "lbr": "\n",
}  # fmt: skip
_SYMBOLS = {b"~": "\u00a0", b"_": "\u2011", b"\\": "\\", b"{": "{", b"}": "}"}
_PARAGRAPH_ENDS = frozenset(("par", "page", "sect", "column"))
_SCRIPTS = {"super": "super", "sub": "sub", "up": "super", "dn": "sub", "nosupersub": ""}
# Code pages of Windows by the character set of a font, and Python's names of those it calls otherwise.
_CHARSETS = {
    77: 10000, 78: 932, 79: 949, 80: 936, 81: 950, 85: 10006, 86: 10081, 88: 10029, 89: 10007, 128: 932,
    129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257,
    204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}  # fmt: skip
_CODE_PAGES = {
    936: "gb18030", 950: "big5hkscs", 1361: "johab", 10000: "mac_roman", 10006: "mac_greek",
    10007: "mac_cyrillic", 10029: "mac_latin2", 10081: "mac_turkish", 65001: "utf-8",
}  # fmt: skip
_PICTURES = (".png", ".jpg", ".jpeg", ".tiff", ".tif", ".gif", ".heic", ".webp", ".bmp")
_NESTED_ROW_END = "; "
_SYMBOL_CHARSET = 2
_PRIVATE = 0xF000
_MOST_LEVELS = 8
# Edges of cells closer than this, in twentieths of a point, belong to one column.
_NEAR_TWIPS = 100
_MOST_COLUMNS = 64
_TELL_EVERY_BYTES = 1024 * 1024


def rtf_text(data: bytes, told: Told, gathered: Gathered) -> str:
    """The text of the file; empty if it has none. Raises `TooLongError`."""
    return _Reader(data, gathered).read(told)


class _State(NamedTuple):
    """Properties of a group, which end with it. A `font` of -1 is the file's default."""

    left_out: bool = False
    in_fonts: bool = False
    font: int = -1
    fallback: int = 1
    hidden: bool = False
    deleted: bool = False
    struck: bool = False
    nested: bool = False
    script: str = ""
    in_table: bool = False
    heading: int = 0
    level: int = 0


class _Row(NamedTuple):
    """`edges` are where the cells begin, and where the last one ends, in twips."""

    edges: list[int]
    cells: list[str]


class _Reader:
    def __init__(self, data: bytes, gathered: Gathered) -> None:
        self._data = data
        self._gathered = gathered
        self._state = _State()
        self._groups: list[_State] = []
        self._writer = Writer(gathered)
        # Text of the open paragraph; of notes, text boxes and list marks, with the depth of their group.
        self._line: list[Run] = []
        self._stories: list[tuple[int, str, list[Run]]] = []
        self._note = ""  # the number of the next note, if the text has it already
        self._address = ""  # of the field whose result follows
        self._is_drawn = False  # whether that is drawn when the page is
        self._form: dict[str, int] = {}
        self._choices: list[str] = []
        self._math: Builder | None = None
        self._math_depths: list[int] = []
        self._bytes = bytearray()
        self._skipped = 0
        self._codec = "cp1252"
        self._default_font = -1
        self._fonts: dict[int, tuple[str, str]] = {}
        self._font = -1
        self._mark = ""
        self._edges: list[int] = [0]
        self._cell: list[str] = []
        self._cells: list[str] = []
        self._rows: list[_Row] = []

    def read(self, told: Told) -> str:
        data, at, tell_at, marked = self._data, 0, 0, False
        while at < len(data):
            if at >= tell_at:
                told(at, len(data), "bytes")
                tell_at = at + _TELL_EVERY_BYTES
            if self._state.left_out and (rest := _SKIPPED_TEXT.match(data, at)):
                at = rest.end()
                continue
            found = _TOKEN.match(data, at)
            if found is None:  # a backslash at the end of the file
                break
            at = found.end()
            word, parameter, code, sign, brace, text = found.groups()
            was_marked, marked = marked, sign == b"*"
            if word is not None:
                name, value = word.decode("ascii"), int(parameter) if parameter else None
                if name == "bin":
                    at += max(value or 0, 0)
                self._word(name, value, marked=was_marked)
            elif brace:
                self._brace(brace)
            elif self._state.left_out:
                continue
            elif code:
                self._add_bytes(bytes((int(code, 16),)))
            elif sign:
                self._sign(sign)
            elif text:
                self._add_bytes(text)
        self._flush()
        while self._stories:
            self._close_story()
        self._end_paragraph()
        self._end_table()
        text = self._writer.text()
        return text if self._writer.says else ""

    # ---- tokens

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._skipped = 0
        if brace == b"{":
            self._groups.append(self._state)
        elif self._groups:
            self._state = self._groups.pop()
            while self._math and self._math_depths and len(self._groups) < self._math_depths[-1]:
                self._math_depths.pop()
                if self._math.end():
                    line, self._math = equation_line(self._math.root), None
                    self._add(line)
            if self._stories and len(self._groups) < self._stories[-1][0]:
                self._close_story()

    def _sign(self, sign: bytes) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        self._flush()
        if sign in b"\r\n":
            self._end_paragraph()
        elif sign in _SYMBOLS:
            self._add(_SYMBOLS[sign])

    def _word(self, name: str, value: int | None, *, marked: bool) -> None:
        self._flush()
        if name in ("pict", "shppict") and not self._state.left_out:
            self._gathered.leave_out("picture")
            self._add("[picture]")
        if name in _LEFT_OUT or (marked and name not in _KEPT):
            self._state = self._state._replace(left_out=True)
        elif name in ("ud", "shptxt"):
            # Inside of destinations that are left out.
            self._state = self._state._replace(left_out=False)
        if self._state.left_out:
            return
        if name == "u" and value is not None:
            self._add_unicode(value)
        elif self._skipped:
            self._skipped -= 1
        elif name in _CHARACTERS:
            self._add(_CHARACTERS[name])
        elif name in _PARAGRAPH_ENDS:
            if not self._state.deleted:
                self._end_paragraph()
            elif not self._line:
                self._mark = ""
        elif name in _STORIES:
            self._stories.append((len(self._groups), _STORIES[name], self._line))
            self._line = []
        elif name == "fldrslt" and self._is_drawn:
            self._state, self._is_drawn = self._state._replace(left_out=True), False
        elif name == "fldrslt" and self._address:
            self._stories.append((len(self._groups), self._address, self._line))
            self._line, self._address = [], ""
        elif name in _MATH and (self._math or name == "moMath"):
            if self._math is None:
                self._math = Builder(Element("oMath"))
            else:
                self._math.start(name[1:])
            self._math_depths.append(len(self._groups))
        elif name in ("fftype", "ffres", "ffdefres"):
            self._form[name] = value or 0
        elif name == "nesttableprops":
            self._state = self._state._replace(nested=True)
        else:
            self._property(name, value)
            self._table_word(name, value or 0)

    def _property(self, name: str, value: int | None) -> None:
        state, is_on = self._state, value != 0
        match name:
            case "ansicpg":
                self._codec = _codec(value or 0) or self._codec
            case "mac" | "pc" | "pca":
                self._codec = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[name]
            case "deff":
                self._default_font = value or 0
            case "fonttbl":
                self._state = state._replace(in_fonts=True)
            case "f" if state.in_fonts:
                self._font = value or 0
                self._fonts[self._font] = ("", "")
            case "f":
                self._state = state._replace(font=value or 0)
            case "fcharset" | "cpg" if state.in_fonts:
                page = _CHARSETS.get(value or 0, 0) if name == "fcharset" else value or 0
                is_symbol = name == "fcharset" and value == _SYMBOL_CHARSET
                self._fonts[self._font] = ("symbol" if is_symbol else _codec(page), "")
            case "uc":
                self._state = state._replace(fallback=min(max(value or 0, 0), 100))
            case "v":
                self._state = state._replace(hidden=is_on)
            case "deleted":
                self._state = state._replace(deleted=is_on)
            case "strike" | "striked":
                self._state = state._replace(struck=is_on)
            case "super" | "sub" | "up" | "dn" | "nosupersub":
                self._state = state._replace(script=_SCRIPTS[name] if is_on else "")
            case "plain":
                self._state = state._replace(font=-1, hidden=False, deleted=False, struck=False, script="")
            case "pard":
                self._state = state._replace(in_table=False, heading=0, level=0)
            case "intbl":
                self._state = state._replace(in_table=is_on)
            case "outlinelevel" if value is not None:
                self._state = state._replace(heading=value + 1 if 0 <= value < 6 else 0)
            case "ilvl":
                self._state = state._replace(level=min(max(value or 0, 0), _MOST_LEVELS))
            case "chftn" if not self._stories:
                self._note = self._writer.refer("notes")
                self._add(self._note)

    def _table_word(self, name: str, value: int) -> None:
        match name:
            case "nestcell":
                self._add(" | ")
            case "nestrow":
                if self._line and self._line[-1][0] == " | ":
                    self._line.pop()
                self._add(_NESTED_ROW_END)
            case _ if self._state.nested:
                pass
            case "trowd":
                self._edges = [0]
            case "trleft":
                self._edges[0] = value
            case "cellx":
                self._edges.append(value)
            case "cell" if not self._stories:
                self._take_cell_text()
                self._cells.append(self._joined_cell())
            case "row" if not self._stories:
                self._rows.append(_Row(list(self._edges), self._cells))
                self._cells = []
            case "cell" | "row":
                self._add(" ")

    # ---- text

    def _add_bytes(self, data: bytes) -> None:
        if self._skipped:
            cut = min(self._skipped, len(data))
            self._skipped -= cut
            data = data[cut:]
        self._bytes += data

    def _flush(self) -> None:
        """Decode the collected bytes with the code page of the font."""
        if not self._bytes:
            return
        data, state = bytes(self._bytes), self._state
        self._bytes.clear()
        if state.in_fonts:
            codec, name = self._fonts.get(self._font, ("", ""))
            self._fonts[self._font] = (codec, name + data.decode("ascii", "replace").partition(";")[0])
            return
        codec, name = self._font_of(state)
        if codec == "symbol":
            self._add("".join(symbol(name, f"{_PRIVATE + byte:x}") if byte > 32 else " " for byte in data))
        else:
            self._add(data.decode(codec or self._codec, "replace"))

    def _font_of(self, state: _State) -> tuple[str, str]:
        return self._fonts.get(state.font if state.font >= 0 else self._default_font, ("", ""))

    def _add_unicode(self, value: int) -> None:
        """A UTF-16 code unit, after which the fallback for older programs is skipped."""
        self._skipped = self._state.fallback
        unit = value & 0xFFFF
        codec, name = self._font_of(self._state)
        in_symbols = codec == "symbol" and _PRIVATE <= unit <= _PRIVATE + 0xFF
        self._add(symbol(name, f"{unit:x}") if in_symbols else chr(unit))

    def _add(self, text: str) -> None:
        state = self._state
        if state.left_out or state.in_fonts or state.deleted:
            if state.deleted:
                self._gathered.leave_out("deleted word", len(text.split()))
        elif self._math is not None:
            if self._math.innermost.tag == "r":
                self._math.start("t")
                self._math.characters(text)
                self._math.end()
            else:
                self._math.characters(text)
        elif state.hidden:
            self._writer.words(text, Marks(hidden=True))
        else:
            self._line.append((text, Marks(state.script, state.struck)))

    # ---- paragraphs, notes and tables

    def _close_story(self) -> None:
        _, kind, outer = self._stories.pop()
        text, self._line = lowered(self._line), outer
        line = " ".join(text.split())
        match kind:
            case "mark":
                self._mark = text.strip()
            case "choice":
                self._choices.append(line)
            case "instruction":
                found, drawn = LINK_FIELD.search(text), field_text(text)
                self._address = found[1] if found else ""
                self._is_drawn = drawn is not None
                self._add(drawn or self._form_text())
            case "object":
                self._add("[equation]" if is_equation(line) else "[object]")
                self._gathered.leave_out("equation" if is_equation(line) else "object")
            case "graphic":  # TextEdit's name of a file next to the text
                name = line.partition("\\")[0].strip()
                is_picture = name.lower().endswith(_PICTURES)
                self._gathered.leave_out("picture" if is_picture else "attachment", place=name)
                self._add(f"[picture: {name}]" if is_picture else strings.attachment_left_out(name))
                self._skipped = 1  # the sign in its place
            case "header" | "footer":
                self._writer.add_note(f"[page {kind}]", line)
            case "note" | "comment":
                label = self._note if kind == "note" else ""
                if not label:
                    label = self._writer.refer("notes" if kind == "note" else "comments")
                    self._add(label)
                self._note = "" if kind == "note" else self._note
                self._writer.add_note(label, line)
            case "box":
                self._add(f"\n{text.strip()}\n" if text.strip() else "")
            case address:
                self._add(with_address(text, address))

    def _form_text(self) -> str:
        """The state of the box or the choice that a form's field is; empty for another field."""
        form, choices = self._form, self._choices
        self._form, self._choices = {}, []
        chosen = form.get("ffres", 25)
        chosen = form.get("ffdefres", 0) if chosen == 25 else chosen
        if form.get("fftype") == 1:
            return f"[{'x' if chosen else ' '}]"
        return choices[chosen] if form.get("fftype") == 2 and 0 <= chosen < len(choices) else ""

    def _end_paragraph(self) -> None:
        if self._stories:
            self._add("\n")
        elif self._state.in_table:
            self._take_cell_text()
        else:
            self._end_table()
            text, kind = self._paragraph()
            self._writer.put(Block(kind, text))

    def _paragraph(self) -> tuple[str, str]:
        """The open paragraph with its marks, which ends, and its kind; an empty text if it has no words."""
        lines, mark, state = lowered(self._line).split("\n"), self._mark, self._state
        self._line, self._mark = [], ""
        text = "\n".join(filter(None, (line.strip() for line in lines)))
        if not text:
            return "", ""
        if mark:
            is_number = mark != "o" and any(letter.isalnum() for letter in mark)
            text = f"{mark if is_number else '-'} {text}"
        if state.heading:
            return f"{'#' * state.heading} {text}", "paragraph"
        return (f"{'    ' * state.level}{text}", "item") if mark else (text, "paragraph")

    def _take_cell_text(self) -> None:
        if self._line and self._line[-1][0] == _NESTED_ROW_END:
            self._line.pop()
        self._cell.append(self._paragraph()[0])

    def _joined_cell(self) -> str:
        """The paragraphs of the open cell on one line; the cell ends."""
        text, self._cell = " ".join(" ".join(self._cell).split()), []
        return text

    def _end_table(self) -> None:
        if self._cells or self._cell:
            self._rows.append(_Row([], [*self._cells, self._joined_cell()]))
            self._cells = []
        rows, self._rows = self._rows, []
        columns = _columns(rows)
        lines = ("\t".join(_placed(row, columns)).rstrip("\t") for row in rows)
        self._writer.put(Block("table", "\n".join(filter(None, lines))))


def _columns(rows: list[_Row]) -> list[int]:
    """Where the columns of the table begin, in twips; empty if the rows have no common ones."""
    columns: list[int] = []
    for edge in sorted({edge for row in rows for edge in row.edges[: len(row.cells)]}):
        if not columns or edge > columns[-1] + _NEAR_TWIPS:
            columns.append(edge)
    known = all(len(row.edges) > len(row.cells) for row in rows)
    return columns if known and len(columns) <= _MOST_COLUMNS else []


def _placed(row: _Row, columns: list[int]) -> list[str]:
    """The cells of `row`, each in its column."""
    if not columns:
        return row.cells
    placed: list[str] = []
    for edge, cell in zip(row.edges, row.cells):
        column = bisect_right(columns, edge) - 1
        placed += [""] * (column - len(placed))
        placed.append(cell)
    return placed


def _codec(page: int) -> str:
    """Python's codec for a code page of Windows; empty for one that it does not have."""
    name = _CODE_PAGES.get(page, f"cp{page}")
    try:
        return codecs.lookup(name).name if page else ""
    except LookupError:
        return ""
