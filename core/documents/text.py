"""Bytes to text: the encoding of a text file, and whether it is a text at all. Pure.

In this order: a byte order mark; the encoding that the file declares, unless the text is UTF-8 all the same;
UTF-8, in which a few damaged bytes cost one character each; UTF-16 without a mark, recognised by its zero
bytes; the detector of the `chardet` package. For Latin text with few accented letters the detector's figures
are close to each other, so there the most plausible decoding wins (`_plausible`). `Decoded.certain` says
whether the encoding was known or guessed.

Labels in HTML and XML mean what browsers take them for (WHATWG Encoding Standard, section 4.2).
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

# UTF-32's mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Seven-bit encodings that switch alphabets by escape sequences.
_ESCAPES = ((b"\x1b$B", "iso2022_jp_2"), (b"\x1b$@", "iso2022_jp_2"), (b"\x1b$)C", "iso2022_kr"))
# Tab, line ends, form feed, characters of terminals (bell, backspace, escape), and DOS's end of file.
_HARMLESS = frozenset("\a\b\t\n\r\x0b\x0c\x1a\x1b\x85")
_LOOKED_AT = 65_536
_MOST_CONTROLS = 0.002
# Zero bytes are replaced in a file that is otherwise text; binary files have other control bytes, too.
_MOST_ZEROS = 0.95
# Minimum ratio of valid multi-byte characters to bad bytes in damaged UTF-8.
_GOOD_FOR_EACH_BAD = 3
# The detector's confidence above which it is right about other scripts than Latin (measured on 23 encodings).
_CONFIDENT = 0.2
# A text that is valid UTF-8 with more continuation bytes than this is hardly so by chance.
_SURE_BYTES = 16
_MOST_OTHERS = 6
_SAMPLE_BYTES = 128 * 1024
# Codecs of Python that no browser uses, in the order of preference where they explain a text equally well.
_LATIN = (
    "cp1252", "cp1250", "cp1254", "cp1257", "iso8859-2", "iso8859-15", "mac_roman", "cp850", "cp437",
    "cp852",
)  # fmt: skip
# Python's codec for a label; labels not listed mean Python's codec of that name.
_WHATWG = {
    **dict.fromkeys(("iso8859-1", "ascii", "latin-1", "us-ascii"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk", "hz"), "gb18030"),
    **dict.fromkeys(("shift_jis", "x-sjis", "ms_kanji", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc_kr", "ks_c_5601-1987", "ksc5601", "johab"), "cp949"),
    **dict.fromkeys(("iso8859-9",), "cp1254"),
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    **dict.fromkeys(("big5", "x-x-big5", "cn-big5"), "big5hkscs"),
    "koi8-r": "koi8-r",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-user-defined": "",
    "unicode": "utf-16",
}
# Codecs of Python that no document is written in; some take quadratic time.
_NOT_OF_TEXTS = frozenset((
    "utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem", "hex",
    "base64", "bz2", "zlib", "quopri", "rot13", "uu",
))  # fmt: skip


class Decoded(NamedTuple):
    """A text with plain line ends. `encoding` is Python's name; `certain` is False if it was guessed and
    close. `others` are then the encodings that give another text, the more plausible first.
    """

    text: str
    encoding: str
    certain: bool
    others: tuple[str, ...] = ()


class Guess(NamedTuple):
    """An encoding that was guessed, and the others it may be."""

    encoding: str
    others: tuple[str, ...]


def decode(data: bytes, declared: str = "", chosen: str = "") -> Decoded:
    """`data` as text.

    `declared` is the label of an encoding, tried before any guess; `chosen` a codec that is used in any case.
    Raises ValueError if `data` is not a text.
    """
    if chosen:
        found: Decoded | None = Decoded(_repaired(data, chosen).removeprefix("\ufeff"), chosen, True)
    else:
        found = _decode(data, codec_of(declared))
    if found is None or _looks_binary(found.text):
        raise ValueError("not a text")
    # Zero bytes and a final Ctrl-Z, as crashes and downloads leave them in logs.
    text = found.text.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\x1a")
    return found._replace(text=text)


def codec_of(label: str) -> str:
    """Python's codec for a `label` as browsers read it; empty if there is none."""
    label = label.strip().lower()
    try:
        name = codecs.lookup(label).name if label else ""
    except (LookupError, ValueError):
        name = ""
    for known in (label, name):
        if known in _WHATWG:
            return _WHATWG[known]
    return "" if name.replace("_", "-").removesuffix("-codec") in _NOT_OF_TEXTS else name


# Declarations of XML, LaTeX, editors and programming languages in the first lines.
_DECLARED = re.compile(
    rb"""\A<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})
    |\\usepackage\s*\[([\w-]{1,40})\]\s*\{inputenc\}
    |\A(?:[^\n]{0,200}\n)?[ \t]*[#%/;"][^\n]{0,80}?coding\s*[:=]\s*([\w.-]{1,40})""",
    re.VERBOSE | re.IGNORECASE,
)
_TEX_NAMES = {"ansinew": "cp1252", "applemac": "mac-roman", "macce": "mac-latin2", "utf8x": "utf-8"}
_HEAD_BYTES = 8192


def declared_in_text(data: bytes) -> str:
    """The encoding that a text declares for itself; empty if there is none, or if it is UTF-8 all the same.

    Editors convert files to UTF-8 and leave the declaration as it was.
    """
    for found in _DECLARED.finditer(data[:_HEAD_BYTES]):
        label = next(filter(None, found.groups())).decode("ascii", "replace").lower()
        if codec_of(label := _TEX_NAMES.get(label, label)):
            return "" if _strict(data, "utf-8") is not None else label
    return ""


def _decode(data: bytes, declared: str) -> Decoded | None:
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return Decoded(_repaired(data, codec), codec, True)
    utf_8 = _strict(data, "utf-8")
    if declared and (text := _strict(data, declared)) is not None and "\0" not in text:
        # Programs convert files and mails and keep the label. A few letters of two bytes may be both.
        beyond = len(data) - len(utf_8 or data)
        if utf_8 and beyond and "\0" not in utf_8 and (len(text) == len(data) or beyond > _SURE_BYTES):
            return Decoded(utf_8, "utf-8", True)
        return Decoded(text, declared, True)
    for escape, codec in _ESCAPES:
        if escape in data and (text := _strict(data, codec)) is not None:
            return Decoded(text, codec, True)
    if utf_8 is not None and "\0" not in utf_8:
        return Decoded(utf_8, "utf-8", True)
    cut = len(data) % 2
    if (codec := _utf16_by_zeros(data)) and "\0" not in (
        text := _strict(data[: len(data) - cut], codec) or "\0"
    ):
        return Decoded(text + "\ufffd" * cut, codec, True)
    if b"\0" in data:
        return Decoded(utf_8, "utf-8", True) if utf_8 is not None else _damaged(data, "utf-8")
    for codec in ("utf-8", declared):
        if codec and (damaged := _damaged(data, codec)):
            return damaged
    return _detected(data)


def _strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except (UnicodeError, LookupError):
        return None


def _repaired(data: bytes, codec: str) -> str:
    """Damaged bytes become U+FFFD, one for each broken character; in GB 18030 the byte 0x80 is the euro
    sign.
    """
    if codec == "gb18030":
        codecs.register_error("draftlight-gb18030", _replaced_in_gb18030)
        return data.decode(codec, "draftlight-gb18030")
    return data.decode(codec, "replace")


def _replaced_in_gb18030(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "€" if error.object[error.start] == 0x80 else "\ufffd", error.start + 1


def _damaged(data: bytes, codec: str) -> Decoded | None:
    """`data` in `codec` with a few broken characters, or one that is cut off at the end."""
    try:
        text = _repaired(data, codec)
    except LookupError:
        return None
    bad = text.count("\ufffd") - (1 if text.endswith("\ufffd") else 0)
    good = sum(1 for letter in text if letter > "\x7f") - text.count("\ufffd")
    if good and good >= _GOOD_FOR_EACH_BAD * bad:
        return Decoded(text, codec, True)
    return None


def _detected(data: bytes) -> Decoded:
    import chardet

    candidates: dict[str, float] = {}
    for each in chardet.detect_all(_sample(data)):
        codec = codec_of(each["encoding"] or "")
        if codec and codec not in candidates:
            candidates[codec] = float(each["confidence"])
    best = max(candidates, key=lambda codec: candidates[codec], default="")
    if best and candidates[best] >= _CONFIDENT:
        return Decoded(_repaired(data, best), best, True)
    ranked: list[tuple[float, str, str]] = []
    for codec in {**dict.fromkeys(_LATIN), **candidates}:
        try:
            text = _repaired(data, codec)
        except LookupError:
            continue
        preference = 1.0 - 0.06 * _LATIN.index(codec) if codec in _LATIN else 0.6
        score = _plausible(text[:_LOOKED_AT]) * (preference * 0.05 + candidates.get(codec, 0.0))
        ranked.append((score, codec, text))
    ranked.sort(key=lambda each: -each[0])
    (score, codec, text), *others = ranked
    rival = next((other for other, _, same in others if same != text), 0.0)
    different = {same: name for _, name, same in reversed(others) if same != text}
    names = tuple(dict.fromkeys(name for _, name, _ in others if name in different.values()))
    return Decoded(text, codec, score > 1.5 * rival, names[:_MOST_OTHERS])


def _sample(data: bytes) -> bytes:
    """The most informative part: whole lines around the first byte beyond ASCII."""
    if len(data) <= _SAMPLE_BYTES:
        return data
    first = next((at for at, byte in enumerate(data) if byte > 127), 0)
    start = data.rfind(b"\n", 0, first) + 1
    return data[start : start + _SAMPLE_BYTES]


_LATIN_WORD = re.compile(r"[^\W\d_]+")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
# Punctuation, currency and quotation marks of running text.
_ORDINARY = frozenset("  ¡¿§©®°±²³·¹º»«¼½¾×÷–—‘’‚“”„†‡•…‰‹›€™№£¥¢¶ª´")


def _plausible(text: str) -> float:
    """Share, 0 to 1, of the characters beyond ASCII that running text would have where they are.

    A letter fits if its word is of one script and does not change from small letters to capitals; of other
    characters ordinary punctuation between words fits.
    """
    total = fits = 0
    for word in _LATIN_WORD.finditer(text):
        letters = word.group()
        beyond = sum(letter > "\x7f" for letter in letters)
        if not beyond:
            continue
        total += beyond
        latin = [letter < "\u0250" for letter in letters]
        if all(latin) or not any(latin):
            inner = letters[1:]
            fits += beyond if letters.isupper() or inner == inner.lower() else 0
    for found in _BEYOND_ASCII.finditer(text):
        letter = found.group()
        if letter.isalpha():
            continue
        total += 1
        at = found.start()
        inside = text[at - 1 : at].isalpha() and text[at + 1 : at + 2].isalpha()
        fits += letter in _ORDINARY and (not inside or letter in "’·")
    return fits / total if total else 1.0


def _utf16_by_zeros(data: bytes) -> str:
    """The UTF-16 codec if every other byte is mostly zero, as in Latin text; else empty."""
    head = data[:_LOOKED_AT]
    half = len(head) // 2
    if not half:
        return ""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > 0.4 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.1 * half:
        return "utf-16-be"
    return ""


def _looks_binary(text: str) -> bool:
    head = text[:_LOOKED_AT].replace("\0", "")
    zeros = min(len(text), _LOOKED_AT) - len(head)
    if zeros > _MOST_ZEROS * (len(head) + zeros):
        return True
    controls = sum(1 for letter in head if letter < " " and letter not in _HARMLESS)
    controls += sum(1 for letter in head if "\x7f" <= letter <= "\x9f" and letter not in _HARMLESS)
    return controls > _MOST_CONTROLS * len(head)
