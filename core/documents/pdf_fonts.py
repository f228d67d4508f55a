"""Letters of PDF fonts: fonts that only name their glyphs get a map of letters; text of fonts without one is
recognised.

PDFium takes a character without a map for its code, and does not read names of several letters (`/f_f_i`) or
the names of Type 3 fonts. `mapped` appends a revision to a file in which such fonts have a map. Names follow
the Adobe Glyph List specification. What cannot be letters is found by the characters alone: private use,
controls, marks on nothing, words of three scripts. Pure.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator
from typing import NamedTuple

MOST_MAPPED_BYTES = 64 * 1024 * 1024
_MOST_INFLATED = 64 * 1024 * 1024
_MOST_FONTS = 2_000
_OBJECT = re.compile(rb"(?<![0-9])([0-9]{1,9})[ \r\n\t]+([0-9]{1,5})[ \r\n\t]+obj\b")
_OBJECT_STREAM = re.compile(rb"/ObjStm\b")
_MOST_DICTIONARY = 1_000  # of a stream, before its type
_FIRST = re.compile(rb"/First\s+([0-9]{1,9})")
_STREAM = re.compile(rb"stream\r?\n")
_REFERENCE = re.compile(rb"/Encoding\s+([0-9]{1,9})\s+[0-9]{1,5}\s+R\b")
_DIFFERENCES = re.compile(rb"/Differences\s*\[([^\]]*)\]")
_ENTRY = re.compile(rb"([0-9]{1,3})(?![0-9])|/([^\s/\[\]<>(){}%]{1,80})")
_START = re.compile(rb"startxref\s+([0-9]{1,12})\s")
_ROOT = re.compile(rb"/Root\s+[0-9]{1,9}\s+[0-9]{1,5}\s+R")
_SIZE = re.compile(rb"/Size\s+([0-9]{1,9})")
_NUMBERS = re.compile(rb"[0-9]{1,10}")

# ---- names of glyphs

_GLYPHS = (
    "space exclam quotedbl numbersign dollar percent ampersand quotesingle parenleft parenright asterisk"
    " plus comma hyphen period slash zero one two three four five six seven eight nine colon semicolon"
    " less equal greater question at bracketleft backslash bracketright asciicircum underscore grave"
    " braceleft bar braceright asciitilde exclamdown cent sterling currency yen brokenbar section"
    " copyright ordfeminine guillemotleft logicalnot registered degree plusminus twosuperior"
    " threesuperior acute mu paragraph periodcentered onesuperior ordmasculine guillemotright onequarter"
    " onehalf threequarters questiondown AE Eth Oslash Thorn germandbls ae eth oslash thorn multiply"
    " divide dotlessi Lslash lslash OE oe florin endash emdash quoteleft quoteright quotesinglbase"
    " quotedblleft quotedblright quotedblbase dagger daggerdbl bullet ellipsis perthousand guilsinglleft"
    " guilsinglright fraction Euro trademark minus ff fi fl ffi ffl sfthyphen nbspace partialdiff"
    " summation product radical infinity integral approxequal notequal lessequal greaterequal lozenge"
    " arrowleft arrowup arrowright arrowdown element gradient Dcroat dcroat"
)
_LETTERS = (
    "".join(chr(code) for code in range(0x20, 0x7F) if not chr(code).isalpha())
    + "¡¢£¤¥¦§©ª«¬®°±²³´µ¶·¹º»¼½¾¿ÆÐØÞßæðøþ×÷ıŁłŒœƒ–—‘’‚“”„"
    "†‡•…‰‹›⁄€™−\ufb00\ufb01\ufb02\ufb03\ufb04\u00ad\u00a0∂∑∏√∞∫≈≠≤≥◊←↑→↓∈∇Đđ"
)
_NAMES = dict(zip(_GLYPHS.split(), _LETTERS, strict=True))
_ACCENTS = {
    "grave": "\u0300", "acute": "\u0301", "circumflex": "\u0302", "tilde": "\u0303", "macron": "\u0304",
    "breve": "\u0306", "dotaccent": "\u0307", "dieresis": "\u0308", "ring": "\u030a",
    "hungarumlaut": "\u030b", "caron": "\u030c", "cedilla": "\u0327", "commaaccent": "\u0327",
    "ogonek": "\u0328",
}  # fmt: skip
_ACCENTED = re.compile(rf"([A-Za-z])({'|'.join(_ACCENTS)})")
_UNICODE = re.compile(r"uni((?:[0-9A-F]{4})+)|u([0-9A-F]{4,6})")


def glyph_letters(name: str) -> str:
    """The letters that the glyph `name` shows, such as `ffi` for `f_f_i`; empty if the name is not known."""
    parts = name.partition(".")[0].split("_")
    letters = [_component(part) for part in parts]
    return "".join(letters) if all(letters) else ""


def _component(name: str) -> str:
    if len(name) == 1 and name.isalpha():
        return name
    if name in _NAMES:
        return _NAMES[name]
    if found := _ACCENTED.fullmatch(name):
        return unicodedata.normalize("NFC", found[1] + _ACCENTS[found[2]])
    if found := _UNICODE.fullmatch(name):
        digits, width = found[1] or found[2], 4 if found[1] else len(found[2])
        codes = [int(digits[at : at + width], 16) for at in range(0, len(digits), width)]
        if all(code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF for code in codes):
            return "".join(map(chr, codes))
    for case, change in (("SMALL", str.lower), ("CAPITAL", str.capitalize)):
        if change(name) == name and name.isascii() and name.isalpha():
            try:
                return unicodedata.lookup(f"GREEK {case} LETTER {name.upper()}")
            except KeyError:
                continue
    return ""


# ---- a revision with maps


class _Found(NamedTuple):
    """The dictionary of an object, and its generation."""

    text: bytes
    generation: int


def mapped(data: bytes) -> bytes:
    """A revision to append to the file `data`, in which fonts with names of glyphs have a map of letters.

    Empty if no font needs one, or the file is encrypted, too long, or has no table of objects.
    """
    starts = list(_START.finditer(data, max(0, len(data) - 2048)))
    if len(data) > MOST_MAPPED_BYTES or not starts:
        return b""
    start = int(starts[-1][1])
    head = data[start : start + 64].lstrip()
    is_stream = not head.startswith(b"xref")
    trailer = _dictionary(data, start if is_stream else data.find(b"trailer", start))
    root, size = _ROOT.search(trailer), _SIZE.search(trailer)
    if not root or not size or b"/Encrypt" in trailer:
        return b""
    objects = dict(_objects(data))
    fonts: list[tuple[int, _Found, bytes]] = []
    for number, each in objects.items():
        if b"/Font" in each.text and b"/ToUnicode" not in each.text and len(fonts) < _MOST_FONTS:
            reference = _REFERENCE.search(each.text)
            encoding = objects.get(int(reference[1])) if reference else each
            if encoding and (map_ := _map(encoding.text)):
                fonts.append((number, each, map_))
    return _revision(fonts, len(data), start, int(size[1]), root[0], is_stream=is_stream) if fonts else b""


def _dictionary(data: bytes, start: int) -> bytes:
    """The dictionary that begins behind `start`, up to its stream or the end of its object."""
    if start < 0:
        return b""
    ends = (data.find(mark, start, start + 65_536) for mark in (b"stream", b"endobj", b"startxref"))
    return data[start : min((end for end in ends if end >= 0), default=start + 65_536)]


def has_layers(data: bytes) -> bool:
    """Whether the file `data` has optional content; of an encrypted or long one, whether it may have."""
    return (
        len(data) > MOST_MAPPED_BYTES
        or b"/OCProperties" in data
        or b"/Encrypt" in data
        or any(b"/OCProperties" in inside for _, inside in _object_streams(data))
    )


def _object_streams(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The dictionaries and the contents of streams of objects."""
    inflated = 0
    for found in _OBJECT_STREAM.finditer(data):
        start = data.rfind(b"obj", max(0, found.start() - _MOST_DICTIONARY), found.start())
        text = _dictionary(data, start)
        body = _STREAM.match(data, start + len(text))
        if body is None or inflated > _MOST_INFLATED:
            continue
        try:
            inside = zlib.decompressobj().decompress(data[body.end() :], _MOST_INFLATED - inflated + 1)
        except zlib.error:
            continue
        inflated += len(inside)
        yield text, inside


def _objects(data: bytes) -> Iterator[tuple[int, _Found]]:
    """Fonts and encodings; those of later revisions come last, and outside of streams."""
    for text, inside in _object_streams(data):
        if first := _FIRST.search(text):
            start = int(first[1])
            numbers = [*map(int, _NUMBERS.findall(inside[:start]))]
            places = [start + place for place in numbers[1::2]]
            for number, at, end in zip(numbers[::2], places, [*places[1:], len(inside)]):
                if _is_wanted(inside[at:end]):
                    yield number, _Found(inside[at:end], 0)
    for found in _OBJECT.finditer(data):
        text = _dictionary(data, found.end())
        if _is_wanted(text):
            yield int(found[1]), _Found(text, int(found[2]))


def _is_wanted(text: bytes) -> bool:
    return b"/Differences" in text or (b"/Font" in text and b"/Encoding" in text)


def _map(encoding: bytes) -> bytes:
    """The lines of a map for the differences of an encoding; empty if it has none with letters."""
    differences = _DIFFERENCES.search(encoding)
    code, lines = 0, list[str]()
    for number, name in _ENTRY.findall(differences[1]) if differences else ():
        if number:
            code = int(number)
            continue
        if code < 256 and (letters := glyph_letters(name.decode("ascii", "replace"))):
            lines.append(f"<{code:02x}> <{letters.encode('utf-16-be').hex()}>")
        code += 1
    blocks = (lines[at : at + 100] for at in range(0, len(lines), 100))
    return "\n".join(
        f"{len(each)} beginbfchar\n" + "\n".join(each) + "\nendbfchar" for each in blocks
    ).encode()


def _revision(
    fonts: list[tuple[int, _Found, bytes]],
    length: int,
    before: int,
    size: int,
    root: bytes,
    *,
    is_stream: bool,
) -> bytes:
    """The fonts with their maps, and a table of objects of the kind that the file has."""
    out = bytearray(b"\n")
    places: dict[int, tuple[int, int]] = {}  # offset and generation by number
    for added, (number, font, lines) in enumerate(fonts, size):
        body = b"1 begincodespacerange <00> <ff> endcodespacerange\n" + lines
        places[added] = length + len(out), 0
        out += b"%d 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (added, len(body), body)
        places[number] = length + len(out), font.generation
        text = font.text.replace(b"<<", b"<< /ToUnicode %d 0 R " % added, 1)
        out += b"%d %d obj\n%s\nendobj\n" % (number, font.generation, text)
    start, last = length + len(out), size + len(fonts)
    if is_stream:
        places[last] = start, 0
        entries = b"".join(
            b"\x01" + offset.to_bytes(5, "big") + generation.to_bytes(2, "big")
            for _, (offset, generation) in sorted(places.items())
        )
        index = b" ".join(b"%d 1" % number for number in sorted(places))
        out += b"%d 0 obj\n<< /Type /XRef /W [1 5 2] /Index [%s] /Size %d %s /Prev %d /Length %d >>" % (
            last, index, last + 1, root, before, len(entries),
        )  # fmt: skip
        out += b"\nstream\n%s\nendstream\nendobj\n" % entries
    else:
        out += b"xref\n"
        for number, (offset, generation) in sorted(places.items()):
            out += b"%d 1\n%010d %05d n \n" % (number, offset, generation)
        out += b"trailer\n<< /Size %d %s /Prev %d >>\n" % (last, root, before)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


# ---- what cannot be text

_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_WIDE_CODECS = ("shift_jis", "gb2312", "big5", "euc_kr")
_ORDINARY = 0x250  # where Latin letters of European languages end
# Shares of a text from which its codes are taken for letters.
_FEWEST_VOWELS, _MOST_SIGNS, _FEWEST_WIDE = 0.15, 0.25, 0.8
_MOST_SCRIPTS = 2  # of a word
_WRITTEN_TOGETHER = frozenset(("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "FULLWIDTH"))


def codes_are_letters(text: str) -> bool:
    """Whether codes of a font without a map, taken for characters, seem to be the letters that it shows.

    Programs number glyphs from 1, so that a text has control characters or rare letters.
    """
    letters = "".join(text.split())
    if not letters or _CONTROLS.search(text):
        return False
    wide = [letter for letter in letters if letter >= "\u2e80"]
    if wide:
        return any(_encodable(wide, codec) >= _FEWEST_WIDE * len(letters) for codec in _WIDE_CODECS)
    alphabetic = [letter for letter in letters if letter.isalpha()]
    if any(ord(letter) >= _ORDINARY for letter in alphabetic):
        return False
    plain = unicodedata.normalize("NFD", "".join(alphabetic).casefold())
    vowels = sum(letter in "aeiouy" for letter in plain)
    signs = sum(not (letter.isalnum() or letter in ".,:;-/") for letter in letters)
    has_vowels = vowels >= _FEWEST_VOWELS * len(alphabetic) or 2 * len(alphabetic) < len(letters)
    return signs <= _MOST_SIGNS * len(letters) and has_vowels


def _encodable(letters: list[str], codec: str) -> int:
    # Python writes rare Korean syllables letter by letter.
    return sum(0 < len(letter.encode(codec, "ignore")) <= 2 for letter in letters)


def impossible(text: str) -> int:
    """How many characters of `text` cannot be text: private use, controls, unassigned ones, marks on nothing,
    and words of three scripts.
    """
    return sum(
        sum(_is_no_letter(letter) for letter in word) if _is_one_text(word) else len(word)
        for word in text.split()
    )


def _is_no_letter(letter: str) -> bool:
    return letter == "\ufffd" or unicodedata.category(letter) in ("Co", "Cn", "Cc")


def _is_one_text(word: str) -> bool:
    if word.isascii():
        return True
    scripts = [unicodedata.name(letter, "").partition(" ")[0] for letter in word]
    if unicodedata.category(word[0]) in ("Mn", "Mc") and scripts[0] not in scripts[1:2]:
        return False
    of_letters = {script for letter, script in zip(word, scripts) if letter.isalpha()}
    return len(of_letters - _WRITTEN_TOGETHER) <= _MOST_SCRIPTS
