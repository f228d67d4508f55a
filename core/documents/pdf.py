"""PDF to text, page by page, through PDFium.

PDFium reads what people's viewers read: files with an owner password, right-to-left text in reading order,
damaged files. Form fields, comments and the addresses of links follow the words that they belong to. Tables
become lines with tabs between cells (`pdf_tables`). PDFium's order is kept unless the positions give a better
one: lines from right to left, vertical columns, columns that are drawn row by row. Raised and lowered numbers
are small digits, words that are hyphenated at a line's end are whole. Scanned pages and attachments are
marked.
PDFium is native code, so it runs only in the bounded reader process.

Compared on the project's PDFs (docs/documents.md): pypdf gave right-to-left text reversed or out of order,
and no form fields.
"""

from __future__ import annotations

import ctypes
import io
import math
import os
import re
import struct
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import IO, NamedTuple

import pypdfium2
from pypdfium2 import raw

from core.documents import strings
from core.documents.docx_symbols import symbol
from core.documents.limits import DamagedError, Gathered, LockedError, Told
from core.documents.pdf_fonts import MOST_MAPPED_BYTES, codes_are_letters, has_layers, impossible, mapped
from core.documents.pdf_order import visible_lines
from core.documents.pdf_shown import appearances, hide_layers, turned_text, turns, visible_area
from core.documents.pdf_tables import Box, Table, Word, find_tables
from core.documents.pdf_xfa import xfa_text
from core.documents.writer import SMALL, with_address
from core.system.child_bounds import held_bytes

# ---- the reading order of a line that goes from right to left
#
# A PDF has glyphs at positions. PDFium orders words, but leaves punctuation and numbers between them as they
# are drawn, and mirrors some brackets: “10:30.” at the end of a Hebrew line becomes “.10:30”, and the Arabic
# “2024-117”, which is drawn as 117-2024, keeps that order. This undoes the bidirectional algorithm (Unicode
# Standard Annex 9) on the characters in the order of their positions.

_MIRROR = dict(zip("()[]{}<>«»", ")(][}{><»«"))
_LEFT, _RIGHT, _DIGIT, _NEUTRAL = "LRDN"
# Over the classes above, from left to right: Latin words, the characters between them, and numbers after
# them.
_WORDS = re.compile(r"L(?:[LDN]*[LD])?")
_SIGNS = "#$€£¥₪%°"
_NUMBER = re.compile(rf"[{_SIGNS}]*\d+(?:[-+.,:/\u066b\u066c]\d+)*[{_SIGNS}]*")
# After an Arabic letter, hyphens do not join numbers, and signs do not belong to them (rules W2 and W4).
_ARABIC_NUMBER = re.compile(r"\d+(?:[.,:/\u066b\u066c]\d+)*")
_OPENS, _CLOSES = "([{", ")]}"


def is_from_right(text: str) -> bool:
    """Whether most letters of `text` belong to right-to-left scripts."""
    if text.isascii():
        return False
    classes = [_class(letter) for letter in text]
    return classes.count(_RIGHT) > classes.count(_LEFT)


def has_letters(text: str, *, from_right: bool) -> bool:
    """Whether `text` has a letter of a right-to-left script, or, without `from_right`, of another script."""
    kind = _RIGHT if from_right else _LEFT
    return not (from_right and text.isascii()) and any(_class(letter) == kind for letter in set(text))


def _class(letter: str) -> str:
    found = unicodedata.bidirectional(letter)
    if found in ("R", "AL"):
        return _RIGHT
    return _LEFT if found == "L" else _DIGIT if found in ("EN", "AN") else _NEUTRAL


def reading_order(
    letters: Sequence[str], spans: Sequence[tuple[float, float]]
) -> tuple[list[int], list[str]]:
    """The indices of a line's characters as they are read from the right, and the characters in that order.

    `spans` has the left and the right edge of each character; those of spaces are not used, as PDFium has
    them anywhere. Marks and the letters of a ligature follow their base in `letters`. Brackets face each
    other, whichever way the file encodes them.
    """
    clusters: list[list[int]] = []
    spaces: list[int] = []
    for index, letter in enumerate(letters):
        if letter.isspace():
            spaces.append(index)
        elif clusters and _belongs(letters, spans, clusters[-1][0], index):
            clusters[-1].append(index)
        else:
            clusters.append([index])
    ligatures = [
        cluster
        for cluster in clusters
        if len(cluster) > 1 and all(_class(letters[at]) == _RIGHT for at in cluster)
    ]
    # PDFium returns the letters of a ligature in drawing order, unless the file states their order.
    orders = [_ligature_order("".join(letters[at] for at in cluster)) for cluster in ligatures]
    usual = next(filter(None, orders), -1)
    for cluster, direction in zip(ligatures, orders):
        if (direction or usual) < 0:
            cluster.reverse()
    clusters = _with_spaces(sorted(clusters, key=lambda cluster: spans[cluster[0]][0]), spans, spaces)
    drawn = "".join((letters[cluster[0]] or "\0")[0] for cluster in clusters)
    classes = "".join(map(_class, drawn))
    arabic = any(unicodedata.bidirectional(letter) == "AL" for letter in drawn)
    pieces: list[tuple[int, int]] = []
    at = 0
    while at < len(drawn):
        found = _WORDS.match(classes, at) or (_ARABIC_NUMBER if arabic else _NUMBER).match(drawn, at)
        end = found.end() if found else at + 1
        pieces.append((at, end))
        at = end
    order = [index for start, end in reversed(pieces) for cluster in clusters[start:end] for index in cluster]
    return order, facing([letters[index] for index in order])


@lru_cache(maxsize=1)
def _ligatures() -> frozenset[str]:
    """The letters of each of Unicode's ligatures for right-to-left scripts."""
    codes = (*range(0xFB1D, 0xFDFD), *range(0xFE70, 0xFEFD))
    forms = (unicodedata.normalize("NFKC", chr(code)) for code in codes)
    return frozenset(form for form in forms if len(form) > 1 and " " not in form)


def _ligature_order(text: str) -> int:
    """1 if `text` is a ligature in logical order, -1 if it is reversed, 0 if it could be both."""
    return (text in _ligatures()) - (text[::-1] in _ligatures())


def _belongs(letters: Sequence[str], spans: Sequence[tuple[float, float]], base: int, index: int) -> bool:
    """Whether a character combines with the previous one: a combining mark, or a letter of the same glyph."""
    letter = letters[index] or "\0"
    return unicodedata.category(letter) == "Mn" or (letter.isalpha() and spans[index] == spans[base])


def _with_spaces(
    clusters: list[list[int]], spans: Sequence[tuple[float, float]], spaces: list[int]
) -> list[list[int]]:
    """`clusters` from left to right, with spaces in the widest gaps; remaining spaces come first."""
    inside = range(min(map(min, clusters), default=0), max(map(max, clusters), default=0))
    following = {index - 1 for index in spaces}
    count = sum(index in inside and index not in following for index in spaces)
    gaps = [spans[right[0]][0] - max(spans[index][1] for index in left) for left, right in pairwise(clusters)]
    widest = set(sorted(range(len(gaps)), key=lambda at: -gaps[at])[:count])
    rest = iter(spaces)
    found: list[list[int]] = []
    for at, cluster in enumerate(clusters):
        found.append(cluster)
        if at in widest:
            found.append([next(rest)])
    return [*([index] for index in rest), *found]


def facing(letters: list[str]) -> list[str]:
    """`letters` with mirrored brackets corrected, so that each opens before its text and closes after it."""
    text = "".join(letter or "\0" for letter in letters)
    for index, letter in enumerate(letters):
        before, after = text[max(0, index - 1) : index].strip(), text[index + 1 : index + 2].strip()
        starts = bool(after) and not before
        ends = bool(before) and (not after or after in ".,;:!?")
        if (letter and letter in _OPENS and ends) or (letter and letter in _CLOSES and starts):
            letters[index] = _MIRROR[letter]
    return letters


# ---- text of a document


_MOST_OPTIONS = 200
# Where a line that strikes a word out is, in heights from its top, and how many are compared.
_THROUGH, _MOST_THROUGH = (0.35, 0.68), 200
# Highlighted, underlined, squiggly and struck-out words (PDF 1.7, table 169, as PDFium numbers them).
_ON_WORDS = (9, 10, 11, 12)
_UNSEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
# Most annotations of a page that are read.
_MOST_ANNOTATIONS = 1_000
# Reading a page without content takes less memory than this.
_MOST_EMPTY_PAGE_BYTES = 64 * 1024 * 1024
# Lines of a page's tables are among the first objects; a drawing has more.
_MOST_OBJECTS = 5_000
_MOST_SEGMENTS = 1_000
_LEVEL_DEGREES = 2.0
# Scripts that go from right to left.
_FROM_RIGHT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
# A gap between two letters of a word, at most: in heights of the line, and in gaps of the letters before.
_NARROW, _SPACED = 0.25, 1.3
_MOST_BASELINES = 20
# A letter is on another line if its middle is this far away, in heights.
_OTHER_LINE = 0.5
# Superscripts and subscripts: greatest height, and least distance of the baseline, in heights of the line.
_SMALL, _RAISED, _LOWERED = 0.85, 0.15, 0.04
_SCAN_AREA, _SCAN_WORDS = 0.5, 20
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_MOST_WORD = 60
_RISES = frozenset("0123456789+-\u2212")
_NUMBER_BELOW = re.compile(r"(?<=[^\W\d_])[\r\n]+(?=[\d+\u2212-])")
_RAISED_HYPHENS = frozenset("⁻₋")
# They match from the first letter of a word only: trying each letter took 15 s for a page without spaces.
_SPLIT_WORD = re.compile(r"(?<![^\W\d_])([^\W\d_]+)(?:[\ufffe\x02]\n?|-\n)(?=([^\W\d_]{2,}))")
_BROKEN = re.compile(r"\b\w+(?:[\ufffe\x02]\n?|-\n)\w+")
_KNOWN = re.compile(r"\w+(?:-\w+)?")
_MOST_KNOWN = 100_000
# These keep their hyphen.
_HYPHENATED = frozenset((
    "all", "cross", "ex", "half", "high", "long", "low", "mid", "non", "post", "pre", "self", "semi",
    "short", "well",
))  # fmt: skip
# Controls and private characters, of which a page may have few, and how many others are looked at.
_SUSPICIOUS, _SAMPLE = re.compile("[\x00\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff]"), 64
_MOST_FONT_NAME = 256
_WORD = re.compile(r"\S+")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LINE = re.compile(r"[^\r\n]+[\r\n]*|[\r\n]+")


class _Insert(NamedTuple):
    """Text of a field or a note, and its rectangle on the page: left, bottom, right, top.

    `after` is the number of the word that it follows, if that is known.
    """

    rectangle: tuple[float, float, float, float]
    text: str
    after: int | None = None


class PdfText(NamedTuple):
    """`text`: that of all pages, with an empty line between them. `says`: whether it has more than marks of
    pages without text. `scans`: the numbers of these pages, from 1. `pages`: the characters before each page.
    """

    text: str
    says: bool
    scans: tuple[int, ...]
    pages: tuple[int, ...]


def pdf_text(stream: IO[bytes], told: Told, gathered: Gathered) -> PdfText:
    """Reports progress to `told` before each page. Raises `UnreadableError`, OSError."""
    _check_readable(stream)
    reader = _Reader(stream, gathered)
    damaged: DamagedError | None = None
    says = False
    scans: list[int] = []
    pages: list[int] = []
    at = 0
    try:
        for number in range(reader.pages):
            told(number, reader.pages, "pages")
            place = strings.page_place(number + 1)
            mark = ""
            try:
                page = reader.page(number)
            except DamagedError as error:
                damaged, page = error, _Page()
                gathered.leave_out("missing page", place=place)
                mark = strings.missing_page(place)
            if page.scanned:
                gathered.leave_out("scanned page", place=place)
                mark = strings.scanned_page(number + 1, has_text=bool(page.text))
            elif page.unreadable:
                gathered.leave_out("unreadable page", place=place)
                mark = strings.unreadable_page(number + 1)
            if page.scanned or page.unreadable:
                scans.append(number + 1)
            says = says or bool(page.text)
            between = "\n\n" * (number > 0)
            text = "\n\n".join(filter(None, (page.text, mark)))
            gathered.add(between + text)
            pages.append(at + len(between))
            at = pages[-1] + len(text)
        if damaged and not says and not scans and reader.pages:
            raise damaged
        for text in reader.asides():
            gathered.add(f"\n\n{text}")
        says = says or reader.has_form
    finally:
        reader.document.close()
    text = gathered.text()
    cut = len(text) - len(text.lstrip(" \n"))
    return PdfText(text.strip(" \n"), says, tuple(scans), tuple(max(0, page - cut) for page in pages))


class _Page(NamedTuple):
    """The text of a page; whether it is a scan, or a text whose fonts give no letters."""

    text: str = ""
    scanned: bool = False
    unreadable: bool = False


def _attachments(document: pypdfium2.PdfDocument) -> Iterator[str]:
    """The names of the attached files."""
    for index in range(min(raw.FPDFDoc_GetAttachmentCount(document.raw), _MOST_ANNOTATIONS)):
        if attachment := raw.FPDFDoc_GetAttachment(document.raw, index):
            yield _string(raw.FPDFAttachment_GetName, attachment)


def _check_readable(stream: IO[bytes]) -> None:
    """Raises OSError if the file cannot be read: PDFium reads by a callback, which loses errors."""
    stream.seek(0, os.SEEK_END)
    end = stream.tell()
    for at in (max(0, end - 1), 0):
        stream.seek(at)
        stream.read(1)
    stream.seek(0)


def _goes_from_right(document: pypdfium2.PdfDocument) -> bool:
    """Whether the viewer preferences declare right-to-left reading."""
    name = ctypes.create_string_buffer(8)
    raw.FPDF_VIEWERREF_GetName(document.raw, b"Direction", name, len(name))
    return name.value == b"R2L"


class _Reader:
    """Reads the pages of a document."""

    def __init__(self, stream: IO[bytes], gathered: Gathered) -> None:
        """Raises `UnreadableError`."""
        self._stream, self._gathered = stream, gathered
        self.document = opened_pdf(stream)
        self.pages = len(self.document)
        self.has_form = False  # a form of another kind than PDF's
        self._from_right = _goes_from_right(self.document)
        stream.seek(0)
        self._has_layers = has_layers(stream.read(MOST_MAPPED_BYTES + 1))
        self._is_mapped = False
        self._known: set[str] = set()  # words of the pages until now
        self._hidden_words = 0

    def asides(self) -> Iterator[str]:
        """Text after the pages: an XFA form, a note about hidden words, and files inside of the document."""
        if self.document.get_formtype() == raw.FORMTYPE_XFA_FULL and (form := xfa_text(self.document)):
            self.has_form = True
            yield form
        if self._hidden_words:
            yield strings.hidden_text(self._hidden_words)
        for name in _attachments(self.document):
            self._gathered.leave_out("attachment", place=name)
            yield strings.attachment_left_out(name)

    def _hide(self, words: int, number: int) -> None:
        if words > 0:
            self._hidden_words += words
            self._gathered.leave_out("hidden word", words, strings.page_place(number + 1))

    def page(self, number: int) -> _Page:
        """Raises `DamagedError`, and MemoryError for a page that PDFium cannot hold."""
        most_before = held_bytes()
        page, lines = self._loaded(number)
        text = lines.get_text_range()
        # PDFium takes content that it has no memory for as none, and reports nothing.
        is_empty = not text and not raw.FPDFPage_CountObjects(page.raw)
        if is_empty and held_bytes() > most_before + _MOST_EMPTY_PAGE_BYTES:
            raise MemoryError
        if not self._is_mapped and _has_codes(lines, text):
            self._map_fonts()
            page, lines = self._loaded(number)
        if self._has_layers and hide_layers(page):
            before, lines = len(text.split()), page.get_textpage()
            self._hide(before - len(lines.get_text_range().split()), number)
        found = turns(page)
        if found == [0]:
            read = [self._read(page, lines, number, 0, is_main=True)]
        else:
            read = []
            for turn in found:
                turned, _ = self._loaded(number)
                if self._has_layers:
                    hide_layers(turned)
                read.append(self._read(turned, turned_text(turned, turn), number, turn, is_main=not read))
        pictures = read[0][2]
        whole = "\n\n".join(filter(None, (text for text, _, _ in read)))
        bad = impossible(whole)
        if bad and 2 * bad > len("".join(whole.split())):
            return _Page(unreadable=True)
        scanned = _is_scan(page, pictures, sum(words for _, words, _ in read))
        if pictures and not scanned:
            self._gathered.leave_out("picture", len(pictures), strings.page_place(number + 1))
        return _Page(whole, scanned)

    def _loaded(self, number: int) -> tuple[pypdfium2.PdfPage, pypdfium2.PdfTextPage]:
        try:
            page = self.document[number]
            return page, page.get_textpage()
        except pypdfium2.PdfiumError as error:
            raise DamagedError from error

    def _map_fonts(self) -> None:
        """Reopen the document with Unicode maps added to fonts that lack one."""
        self._is_mapped = True
        self._stream.seek(0)
        data = self._stream.read(MOST_MAPPED_BYTES + 1)
        if added := mapped(data):
            self.document.close()
            self.document = opened_pdf(io.BytesIO(data + added))

    def _read(
        self, page: pypdfium2.PdfPage, lines: pypdfium2.PdfTextPage, number: int, turn: int, *, is_main: bool
    ) -> tuple[str, int, list[float]]:
        """The text of a page in one direction, its number of words and the areas of its pictures.

        Annotations are added to the main direction.
        """
        text = lines.get_text_range()
        letters = _letters(lines, text)
        if _has_codes(lines, text):
            _replace_codes(lines, letters)
        indices: Sequence[int] = range(len(letters))
        is_wide = bool(_WIDE.search(text))  # Japanese pages are from right to left, too
        if has_letters(text, from_right=True) or (self._from_right and not is_wide):
            indices, letters = _read_from_right(lines, letters, self._from_right)
        else:
            _mark_scripts(lines, letters)
            if is_wide:
                indices, letters = _vertical(lines, letters)
        words = _words(lines, letters, indices)
        if isinstance(indices, range) and (seen := visible_lines(words)):
            indices, letters = _in_lines(words, letters, seen)
            words = _words(lines, letters, indices)
        self._hide(_drop(words, letters, _upright(visible_area(page), turn)), number)
        rules, pictures = _drawn(page)
        inserts, struck = list[_Insert](), set[int]()
        if is_main:
            inserts, struck = _annotations(
                self.document, page, number, words, turn, self._gathered, partial(self._hide, number=number)
            )
        _strike(words, letters, struck | _crossed_out(words, rules))
        _insert(words, inserts, turn, len(letters))
        tables = find_tables(words, rules)
        known = self._known
        if len(known) < _MOST_KNOWN:
            known.update(_KNOWN.findall(_BROKEN.sub(" ", text.replace("\r", "")).casefold()))
        blocks = _blocks(letters, words, tables) if tables or inserts else ["".join(letters)]
        return "\n\n".join(filter(None, (_plain(block, known) for block in blocks))), len(words), pictures


def opened_pdf(stream: IO[bytes]) -> pypdfium2.PdfDocument:
    """Raises `UnreadableError`."""
    try:
        document = pypdfium2.PdfDocument(stream)
    except pypdfium2.PdfiumError as error:
        locked = raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        raise (LockedError if locked else DamagedError) from error
    if document.get_formtype() != raw.FORMTYPE_NONE:
        document.init_forms()
    return document


def _drop(words: list[Word], letters: list[str], area: Box) -> int:
    """Remove words outside of the visible area from `words` and `letters`; returns their number."""
    off = {
        word.start: word.end
        for word in words
        if word.box.right < area.left
        or word.box.left > area.right
        or word.box.bottom < area.top
        or word.box.top > area.bottom
    }
    words[:] = [word for word in words if word.start not in off] if off else words
    for start, end in off.items():
        letters[start:end] = [""] * (end - start)
    return len(off)


def _is_scan(page: pypdfium2.PdfPage, pictures: Sequence[float], words: int) -> bool:
    """Whether a page has no words, or a few on a large picture. `pictures`: areas in square points."""
    if not words:
        return bool(pictures) or raw.FPDFPage_CountObjects(page.raw) > 0
    width, height = page.get_size()
    return words < _SCAN_WORDS and max(pictures, default=0.0) > _SCAN_AREA * width * height


def _mark_scripts(lines: pypdfium2.PdfTextPage, letters: list[str]) -> None:
    """Replaces superscript and subscript numbers in `letters` by Unicode's small digits."""
    text = "".join(letter or "\0" for letter in letters)
    for found in _NUMBER_BELOW.finditer(text):  # PDFium begins a line after a letter that is as low as an m
        start, end = found.span()
        _, bottom, right, top = lines.get_charbox(start - 1, loose=True)
        left, low, _, high = lines.get_charbox(end, loose=True)
        height = top - bottom
        is_near = -1 < left - right < _NARROW * height and bottom < high and low < top
        if is_near and high - low < _SMALL * height:
            letters[start:end] = [""] * (end - start)
    text = "".join(letter or "\0" for letter in letters)
    for found in _WORD.finditer(text):
        start, end = found.span()
        if not 1 < end - start < _MOST_WORD or not any(letter.isdigit() for letter in found[0][1:]):
            continue
        base: tuple[float, float] | None = None  # the lower edge and the height of full-size letters
        is_small, right = False, 0.0
        for at in range(start, end):
            _, bottom, right, top = lines.get_charbox(at, loose=True)
            height = top - bottom
            is_small = False
            if base is None or height >= _SMALL * base[1]:
                base = (bottom, height) if base is None or height >= base[1] else base
                if at > start and letters[at - 1] in _RAISED_HYPHENS:  # a hyphen of another font
                    letters[at - 1] = text[at - 1]
            elif text[at] in _RISES and base[1] > 0:
                risen = (bottom - base[0]) / base[1]
                script = "super" if risen > _RAISED else "sub" if risen < -_LOWERED else ""
                letters[at] = text[at].translate(SMALL[script]) if script else letters[at]
                is_small = bool(script)
            elif text[at].isalpha() and bottom < base[0]:  # the word continues in another font
                letters[start:at] = text[start:at]
                break
        after = end + len(text[end : end + 2]) - len(text[end : end + 2].lstrip("\r\n"))
        if is_small and base and after > end and after < len(text):
            # PDFium begins a line where the letters are full-size again.
            left, bottom, _, _ = lines.get_charbox(after, loose=True)
            if abs(bottom - base[0]) < _LOWERED * base[1] and -1 < left - right < base[1]:
                letters[end:after] = [
                    "" if text[after] == " " else " " * (left - right > _NARROW * base[1])
                ] + ["" for _ in range(after - end - 1)]


def _vertical(lines: pypdfium2.PdfTextPage, letters: list[str]) -> tuple[list[int], list[str]]:
    """PDFium's indices and the characters with vertical lines from the right to the left.

    Lines that are one above the other are in tiers, of which the upper is read first.
    """
    found: list[tuple[float, float, float, int, int]] = []  # top, bottom, left, start, end
    has_columns = False
    text = "".join(letter or "\0" for letter in letters)
    for line in _LINE.finditer(text):
        start, end = line.span()
        boxes = [lines.get_charbox(at) for at in range(start, end) if _WIDE.match(text[at])]
        if not boxes:
            continue
        left, right = min(box[0] for box in boxes), max(box[2] for box in boxes)
        bottom, top = min(box[1] for box in boxes), max(box[3] for box in boxes)
        is_column = top - bottom > 1.5 * (right - left)
        if len(boxes) > 1 and not is_column:
            return list(range(len(letters))), letters  # text across
        has_columns = has_columns or is_column
        found.append((top, bottom, left, start, end))  # a single letter may be a column
    if not has_columns:
        return list(range(len(letters))), letters
    found.sort(reverse=True)
    tiers: list[list[tuple[float, float, float, int, int]]] = []
    lowest = 0.0
    for each in found:
        if tiers and each[0] > lowest:
            tiers[-1].append(each)
            lowest = min(lowest, max(each[1], lowest - (each[0] - each[1]) / 2))
        else:
            tiers.append([each])
            lowest = each[1]
    order: list[int] = []
    ordered: list[str] = []
    for tier in tiers:
        for _, _, _, start, end in sorted(tier, key=lambda each: -each[2]):
            own = [at for at in range(start, end) if text[at] not in "\r\n"]
            own.sort(key=lambda at: -lines.get_charbox(at)[3])  # PDFium turns them around in such a document
            order += [*own, own[-1]]
            ordered += [*(letters[at] for at in own), "\n"]
    placed = set(order)
    rest = [at for at in range(len(letters)) if at not in placed]
    return [*order, *rest], [*ordered, *(letters[at] for at in rest)]


def _whole_words(text: str, known: set[str]) -> str:
    """`text` without the hyphens of words broken at a line's end; compounds keep theirs.

    `known`: words of the document. A compound is recognised if it, or both of its parts, occur there.
    """

    def joined(found: re.Match[str]) -> str:
        head, rest = found[1].casefold(), found[2].casefold()
        if f"{head}{rest}" in known and found[2].islower():
            return found[1]
        is_compound = f"{head}-{rest}" in known or head in _HYPHENATED or {head, rest} <= known
        is_whole = found[2].islower() and not found[1][1:].isupper() and not is_compound
        return found[1] if is_whole else f"{found[1]}-"

    return _SPLIT_WORD.sub(joined, text)


def _plain(text: str, known: set[str]) -> str:
    """`text` without PDFium's control characters."""
    # PDFium marks a hyphen at a line's end by U+FFFE or U+0002, and pads with zero characters.
    text = _whole_words(text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", ""), known)
    for mark in ("\ufffe\n", "\x02\n", "\ufffe", "\x02"):
        text = text.replace(mark, "-\n" if mark.endswith("\n") else "-")
    text = _CONTROLS.sub("", text.replace("\u00ad", ""))
    # A table may begin with an empty cell.
    return "\n".join(line.rstrip() for line in text.split("\n")).strip(" \n")


def _crossed_out(words: Sequence[Word], rules: Sequence[Box]) -> set[int]:
    """The numbers of words that a drawn line strikes out."""
    across = sorted((rule.top, rule.left, rule.right) for rule in rules if rule.right - rule.left > 1)
    found: set[int] = set()
    for number, word in enumerate(words if across else ()):
        left, top, right, bottom = word.box
        upper, lower = (top + share * (bottom - top) for share in _THROUGH)
        through = across[bisect_left(across, (upper,)) : bisect_left(across, (lower,))]
        if word.level and any(
            start <= left + 2 and end >= right - 2 for _, start, end in through[:_MOST_THROUGH]
        ):
            found.add(number)
    return found


def _strike(words: list[Word], letters: list[str], struck: set[int]) -> None:
    """Wraps struck-out words in `~~`, neighbouring ones together."""
    for number in struck:
        word = words[number]
        before, after = ("" if number + step in struck else "~~" for step in (-1, 1))
        words[number] = word._replace(text=f"{before}{word.text}{after}")
        letters[word.start] = before + letters[word.start]
        letters[word.end - 1] += after


def _annotations(
    document: pypdfium2.PdfDocument,
    page: pypdfium2.PdfPage,
    number: int,
    words: list[Word],
    turn: int,
    gathered: Gathered,
    hide: Callable[[int], None],
) -> tuple[list[_Insert], set[int]]:
    """Filled form fields, notes, comments, signatures, stamps and addresses of links, in the file's order;
    struck-out words. `hide` is called with the words of those that are not shown.
    """
    form = document.formenv.raw if document.formenv else None
    links: list[_Insert] = []
    inserts: list[_Insert] = []
    struck: set[int] = set()
    looks: list[tuple[int, tuple[float, float, float, float]]] = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            text, looks_like_text = "", kind in (raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_FREETEXT)
            if kind == raw.FPDF_ANNOT_WIDGET and form:
                text = _field(form, annotation)
                looks_like_text = _is_drawn(form, annotation)
            elif kind not in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_LINK):
                text = _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
                if kind == raw.FPDF_ANNOT_FILEATTACHMENT:
                    gathered.leave_out("attachment", place=text)
                    text = strings.attachment_left_out(text)
                elif text.strip() and kind != raw.FPDF_ANNOT_FREETEXT:
                    text = strings.comment(text)
            rectangle = raw.FS_RECTF()
            if not raw.FPDFAnnot_GetRect(annotation, ctypes.byref(rectangle)):
                continue
            if raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                hide(0 if text in ("[x]", "[ ]") else len(text.split()))
                continue
            found = (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
            if kind == raw.FPDF_ANNOT_STRIKEOUT:
                struck |= set(_inside(words, found, turn))
            if kind == raw.FPDF_ANNOT_LINK and (address := _address(document, annotation)):
                links.append(_Insert(found, address))
            elif looks_like_text and (kind != raw.FPDF_ANNOT_FREETEXT or not text.strip()):
                looks.append((index, found))
            if text.strip() and kind != raw.FPDF_ANNOT_LINK:
                # A comment on words follows them; a field or a note follows the word to its left.
                marked = _inside(words, found, turn) if kind in _ON_WORDS else []
                inserts.append(_Insert(found, " ".join(text.split()), marked[-1] if marked else None))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    for link, following in zip(links, [*links[1:], None]):
        # A link over two lines has two rectangles.
        if following is None or following.text != link.text:
            inside = _inside(words, link.rectangle, turn)
            said = " ".join(words[at].text for at in inside)
            if inside and (added := with_address(said, link.text)[len(said) :].strip()):
                inserts.append(_Insert(link.rectangle, added, inside[-1]))
    said_in = appearances(document, number, [index for index, _ in looks]) if looks else []
    for (_, rectangle), said in zip(looks, said_in):
        if text := " ".join(said.split()):
            inserts.append(_Insert(rectangle, text))
    return inserts, struck


def _is_drawn(form: object, annotation: object) -> bool:
    """Whether a field's text is only in its appearance stream."""
    kinds = (raw.FPDF_FORMFIELD_SIGNATURE, raw.FPDF_FORMFIELD_PUSHBUTTON)
    return raw.FPDFAnnot_GetFormFieldType(form, annotation) in kinds


def _inside(words: list[Word], rectangle: tuple[float, float, float, float], turn: int) -> list[int]:
    """The numbers of the words in a rectangle."""
    left, top, right, bottom = _upright(rectangle, turn)
    return [
        number
        for number, word in enumerate(words)
        if left <= word.box.centre <= right and top <= word.box.middle <= bottom
    ]


def _address(document: pypdfium2.PdfDocument, annotation: object) -> str:
    """The address that a link leads to, outside of the file; empty for another link."""
    link = raw.FPDFAnnot_GetLink(annotation)
    action = raw.FPDFLink_GetAction(link) if link else None
    if not action:
        return ""
    # Into a buffer that is too short PDFium writes nothing.
    buffer = ctypes.create_string_buffer(raw.FPDFAction_GetURIPath(document.raw, action, None, 0) or 1)
    raw.FPDFAction_GetURIPath(document.raw, action, buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")


def _field(form: object, annotation: object) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
    if kind == raw.FPDF_FORMFIELD_LISTBOX:
        return " ".join(_options(form, annotation))
    if kind == raw.FPDF_FORMFIELD_COMBOBOX:  # it shows the label of the option whose value it stores
        count = min(raw.FPDFAnnot_GetOptionCount(form, annotation), _MOST_OPTIONS)
        for index in range(count):
            if raw.FPDFAnnot_IsOptionSelected(form, annotation, index):
                return _string(raw.FPDFAnnot_GetOptionLabel, form, annotation, index)
    if kind in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX):
        return _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    return ""


def _options(form: object, annotation: object) -> Iterator[str]:
    """The lines of a list box, which shows all of them, with their marks."""
    for index in range(min(raw.FPDFAnnot_GetOptionCount(form, annotation), _MOST_OPTIONS)):
        label = _string(raw.FPDFAnnot_GetOptionLabel, form, annotation, index)
        yield f"[{'x' if raw.FPDFAnnot_IsOptionSelected(form, annotation, index) else ' '}] {label}"


def _string(call: object, *arguments: object) -> str:
    """The UTF-16 string that PDFium writes into a buffer."""
    assert callable(call)
    size = int(call(*arguments, None, 0))
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").partition("\0")[0]


def _letters(lines: pypdfium2.PdfTextPage, text: str) -> list[str]:
    """The page's characters, one per index of PDFium's; empty where it has none. `text` is all its text."""
    count = lines.count_chars()
    if len(text) == count:
        # The same characters; a call for each would take a quarter of the reader's time.
        letters = list(text.replace("\ufffe", "\x02"))
        return [letter if letter != "\0" else "" for letter in letters] if "\0" in text else letters
    codes = (raw.FPDFText_GetUnicode(lines.raw, at) for at in range(count))
    return [chr(code) if 0 < code <= 0x10FFFF else "" for code in codes]


def _has_codes(lines: pypdfium2.PdfTextPage, text: str) -> bool:
    """Whether characters of the page seem to lack a Unicode map (sampled)."""
    count, error = lines.count_chars(), raw.FPDFText_HasUnicodeMapError
    return bool(_SUSPICIOUS.search(text)) or any(
        error(lines.raw, at) == 1 for at in range(0, count, max(1, count // _SAMPLE))
    )


def _replace_codes(lines: pypdfium2.PdfTextPage, letters: list[str]) -> None:
    """Replaces codes that are not letters by U+FFFD in `letters`, and those of symbol fonts by Unicode."""
    text_page, name = lines.raw, ctypes.create_string_buffer(_MOST_FONT_NAME)
    of_fonts: dict[bytes, list[int]] = {}
    for at, letter in enumerate(letters):
        has_no_map = raw.FPDFText_HasUnicodeMapError(text_page, at) == 1
        if has_no_map or "\ue000" <= letter <= "\uf8ff":
            raw.FPDFText_GetFontInfo(text_page, at, name, len(name), None)
            if has_no_map:
                of_fonts.setdefault(name.value, []).append(at)
            else:
                letters[at] = _of_symbols(letter, name.value.decode("utf-8", "replace"))
    for places in of_fonts.values():
        codes = "".join(letters[at] for at in places)
        if codes.strip() and not codes_are_letters(codes):
            for at in places:
                letters[at] = "\ufffd"


def _of_symbols(letter: str, font: str) -> str:
    """The Unicode character for a private-use code of a symbol font or of Adobe's small capitals."""
    code = ord(letter)
    if 0xF720 < code < 0xF77F:  # Adobe's small capitals and old-style digits
        return chr(code - 0xF700)
    names = (each for each in ("wingdings 2", "wingdings") if each in font.lower().replace("-", " "))
    return symbol(next(names, "symbol"), f"{code:x}") if 0xF020 <= code <= 0xF0FF else "\ufffd"


def _read_from_right(
    lines: pypdfium2.PdfTextPage, letters: list[str], from_right: bool
) -> tuple[list[int], list[str]]:
    """PDFium's indices of the page's characters as they are read, and the characters in that order.

    Changes lines that go from right to left, and in a document whose pages do so (`from_right`) all others,
    which PDFium then takes for lines from right to left.
    """
    order: list[int] = []
    ordered: list[str] = []
    for line in _LINE.finditer("".join(letter or "\0" for letter in letters)):
        start, end = line.span()
        text_end = start + len(line.group().rstrip("\r\n"))
        own = list(range(start, text_end))
        if is_from_right(line.group()) or (from_right and has_letters(line.group(), from_right=True)):
            boxes = {at: lines.get_charbox(at, loose=True) for at in own}
            own, read = [], []
            for part in _baselines(boxes, letters):
                inside, letters_read = reading_order(
                    [letters[at] for at in part], [boxes[at][::2] for at in part]
                )
                own += [part[at] for at in inside] + part[-1:]
                read += [*letters_read, "\n"]
            own.pop()
            read.pop()
        elif from_right and has_letters(line.group(), from_right=False):
            own.sort(key=lambda at: lines.get_charbox(at)[0])
            read = facing([letters[at] for at in own])
            # The end of a sentence of which the other lines go from right to left.
            if len(own) > 1 and read[0] in ".,;:!?" and read[1].isalnum():
                own, read = [*own[1:], own[0]], [*read[1:], read[0]]
        else:
            read = letters[start:text_end]
        order += [*own, *range(text_end, end)]
        ordered += [*read, *letters[text_end:end]]
    return order, ordered


def _baselines(boxes: dict[int, tuple[float, float, float, float]], letters: list[str]) -> list[list[int]]:
    """The indices of a line of PDFium's by baseline, from the top; it joins lines that overlap."""
    parts: list[tuple[float, list[int]]] = []
    for at, (_, bottom, _, top) in boxes.items():
        middle = (top + bottom) / 2
        near = [
            part for part in parts[-_MOST_BASELINES:] if abs(part[0] - middle) < _OTHER_LINE * (top - bottom)
        ]
        if letters[at].isspace() or not letters[at]:
            near = parts[-1:]
        if near:
            near[-1][1].append(at)
        else:
            parts.append((middle, [at]))
    return [part for _, part in sorted(parts, key=lambda part: -part[0])]


def _words(lines: pypdfium2.PdfTextPage, letters: list[str], indices: Sequence[int]) -> list[Word]:
    """Words in the order of reading, with their boxes on the page as it was turned.

    Removes spaces from `letters` that PDFium added between the letters of a word.
    """
    text_page, read_box, read_angle = lines.raw, raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetCharAngle
    rectangle = raw.FS_RECTF()
    to, edges = ctypes.byref(rectangle), struct.Struct("4f").unpack_from
    words: list[Word] = []
    last_end, last_edges, level = 0, (0.0, 0.0), False
    joined = "".join([letter or "\0" for letter in letters])
    goes_from_right = _FROM_RIGHT.search
    for found in _WORD.finditer(joined):
        text = found[0]
        start, end = found.span()
        # The loose box is as high as the font, so that words of one line have equal heights.
        read_box(text_page, indices[start], to)
        left, top, right, bottom = edges(rectangle)
        # Characters of a word that goes from right to left are in any order.
        for at in range(start + 1, end) if goes_from_right(text) else (end - 1,):
            read_box(text_page, indices[at], to)
            next_left, next_top, next_right, next_bottom = edges(rectangle)
            left = next_left if next_left < left else left
            top = next_top if next_top > top else top
            right = next_right if next_right > right else right
            bottom = next_bottom if next_bottom < bottom else bottom
        # Text with the top and bottom of the level word before it is level.
        if not level or (top, bottom) != last_edges:
            turned = math.degrees(read_angle(text_page, indices[start]))
            level = abs((turned + 180) % 360 - 180) < _LEVEL_DEGREES
            last_edges = top, bottom
        box = Box(left, -top, right, -bottom)
        gap = joined[last_end:start]
        if isinstance(indices, range) and _joins(lines, words, box, text, gap):
            letters[last_end] = ""
            last = words.pop()
            left, top, right, bottom = last.box
            box = Box(left, top, box.right, max(bottom, box.bottom))
            start, text, gap = last.start, last.text + text, last.gap
        words.append(Word(box, text, start, end, gap, level))
        last_end = end
    return words


def _in_lines(
    words: Sequence[Word], letters: Sequence[str], lines: Sequence[Sequence[int]]
) -> tuple[list[int], list[str]]:
    """PDFium's indices and the characters of the page with `words` in `lines`."""
    order: list[int] = []
    ordered: list[str] = []
    last = -1
    for line in lines:
        for place, number in enumerate(line):
            word = words[number]
            if number == last + 1:
                start = words[last].end if number else 0
                order += range(start, word.start)
                ordered += letters[start : word.start]
            elif order:
                order.append(word.start)
                ordered.append(" " if place else "\n")
            order += range(word.start, word.end)
            ordered += letters[word.start : word.end]
            last = number
    return order, ordered


def _joins(lines: pypdfium2.PdfTextPage, words: list[Word], box: Box, text: str, gap: str) -> bool:
    """Whether PDFium added the space between the last of `words` and `text`, and both are one word.

    It adds one in text with space between its letters where the file draws a word in two parts.
    """
    # Cheap checks first: they decide for most words.
    if gap != " " or not words:
        return False
    before = words[-1]
    own = box.left - before.box.right
    if not 0 < own < _NARROW * (box.bottom - box.top) or before.box.top != box.top:
        return False
    if before.end - before.start < 2 or not before.text[-1].isalnum() or not text[0].isalnum():
        return False
    if not raw.FPDFText_IsGenerated(lines.raw, before.end):
        return False
    first, second = (lines.get_charbox(before.end - 2 + at, loose=True) for at in range(2))
    usual = second[0] - first[2]
    return bool(usual > 0 and own <= _SPACED * usual)


def _upright(rectangle: tuple[float, float, float, float], turn: int) -> Box:
    """A rectangle of PDF's (left, bottom, right, top) on the page as it was turned, y downwards."""
    left, bottom, right, top = rectangle
    if turn == 90:
        return Box(bottom, left, top, right)
    if turn == 180:
        return Box(-right, bottom, -left, top)
    if turn == 270:
        return Box(-top, -right, -bottom, -left)
    return Box(left, -top, right, -bottom)


def _insert(words: list[Word], inserts: list[_Insert], turn: int, end: int) -> None:
    """Adds each of `inserts` after the last word to its left, else above it, else at the page's `end`."""
    added: list[tuple[int, Word]] = []
    for rectangle, text, after in inserts:
        box = _upright(rectangle, turn)
        if after is not None:
            added.append((after, Word(box, text, words[after].end, words[after].end)))
            continue
        on_line = [
            at
            for at, word in enumerate(words)
            if word.box.top - 3 <= box.middle <= word.box.bottom + 3 and word.box.left < box.left + 3
        ]
        above = [
            at
            for at, word in enumerate(words)
            if word.box.bottom <= box.middle and word.box.left < box.right and word.box.right > box.left
        ]
        if on_line:
            at = max(on_line, key=lambda at: words[at].box.right)
        elif above:
            at = min(above, key=lambda at: (box.middle - words[at].box.bottom, -words[at].box.right))
        else:
            added.append((len(words) - 1, Word(box, text, end, end, "\n")))
            continue
        added.append((at, Word(box, text, words[at].end, words[at].end)))
    for at, word in sorted(added, key=lambda each: each[0])[::-1]:
        words.insert(at + 1, word)


def _drawn(page: pypdfium2.PdfPage) -> tuple[list[Box], list[float]]:
    """Horizontal and vertical lines and edges of rectangles on the page, and the areas of pictures."""
    rules: list[Box] = []
    pictures: list[float] = []
    edges = [ctypes.c_float() for _ in range(4)]
    x, y = ctypes.c_float(), ctypes.c_float()
    matrix = raw.FS_MATRIX()
    drawing, kind_of, path = page.raw, raw.FPDFPageObj_GetType, raw.FPDF_PAGEOBJ_PATH
    for number in range(min(raw.FPDFPage_CountObjects(drawing), _MOST_OBJECTS)):
        drawn = raw.FPDFPage_GetObject(drawing, number)
        kind = kind_of(drawn)
        if kind == raw.FPDF_PAGEOBJ_FORM:  # a scan may be in it
            inside = (
                raw.FPDFFormObj_GetObject(drawn, at)
                for at in range(min(raw.FPDFFormObj_CountObjects(drawn), 20))
            )
            if any(kind_of(each) == raw.FPDF_PAGEOBJ_IMAGE for each in inside):
                kind = raw.FPDF_PAGEOBJ_IMAGE
        if kind == raw.FPDF_PAGEOBJ_IMAGE and raw.FPDFPageObj_GetBounds(drawn, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            pictures.append((right - left) * (top - bottom))
        if kind != path:
            continue
        raw.FPDFPageObj_GetMatrix(drawn, matrix)
        here = start = (0.0, 0.0)
        for index in range(min(raw.FPDFPath_CountSegments(drawn), _MOST_SEGMENTS)):
            segment = raw.FPDFPath_GetPathSegment(drawn, index)
            kind = raw.FPDFPathSegment_GetType(segment)
            raw.FPDFPathSegment_GetPoint(segment, x, y)
            at = (
                matrix.a * x.value + matrix.c * y.value + matrix.e,
                matrix.b * x.value + matrix.d * y.value + matrix.f,
            )
            ends = [(here, at)] if kind == raw.FPDF_SEGMENT_LINETO else []
            here, start = at, at if kind == raw.FPDF_SEGMENT_MOVETO else start
            if raw.FPDFPathSegment_GetClose(segment):
                ends.append((here, start))
            for (left, bottom), (right, top) in ends:
                if abs(left - right) < 1 or abs(bottom - top) < 1:
                    upper, lower = -max(bottom, top), -min(bottom, top)
                    rules.append(Box(min(left, right), upper, max(left, right), lower))
    return rules, pictures


def _blocks(letters: list[str], words: list[Word], tables: list[Table]) -> list[str]:
    """The page's text, in blocks, with tables at their first words, and with fields and notes."""
    table_of = {index: (table, inside[0]) for table in tables for inside in [table.words] for index in inside}
    blocks: list[str] = []
    text: list[str] = []
    position = 0
    for number, word in enumerate(words):
        table, first = table_of.get(number, (None, -1))
        if table is None:
            text += letters[position : word.end] if word.end > word.start else (word.gap, word.text)
        elif number == first:
            text += letters[position : word.start]
            blocks += ["".join(text), table.text(words)]
            text = []
        elif number - 1 not in table_of:
            text += letters[position : word.start]
        position = word.end
    return [*blocks, "".join([*text, *letters[position:]])]
