"""Bytes to text: which encoding a text file has, and whether it is a text at all.

A byte order mark decides; else UTF-8 if the bytes are that; else UTF-16 without a mark, told by
where its zero bytes are; else Windows' Latin alphabet, which takes almost any byte. What then
holds control characters is no text. Pure; knows no files.
"""

from __future__ import annotations

import codecs

# UTF-32's mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Tab, line ends, form feed, escape (terminal logs), and DOS's end of file.
_HARMLESS = frozenset("\t\n\r\x0b\x0c\x1a\x1b\x85")
_LOOKED_AT = 65_536
_MOST_CONTROLS = 0.002


def decode_text(data: bytes, declared: str = "") -> str:
    """`data` as text with plain line ends. `declared` is tried before guessing.

    Raises ValueError if it is not a text.
    """
    text = _decode(data, declared)
    if text is None or _looks_binary(text):
        raise ValueError("not a text")
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\x1a")


def _decode(data: bytes, declared: str) -> str | None:
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _strict(data, codec)
    for codec in (declared, "utf-8", _utf16_by_zeros(data)):
        if codec and (text := _strict(data, codec)) is not None and "\0" not in text:
            return text
    if b"\0" in data:
        return None
    # Five bytes mean nothing in Windows' alphabet; Latin-1 takes them.
    text = _strict(data, "cp1252")
    return data.decode("latin-1") if text is None else text


def _strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except (UnicodeError, LookupError):
        return None


def _utf16_by_zeros(data: bytes) -> str:
    """Which UTF-16 it is if every other byte is mostly zero, as in Latin writing; else empty."""
    head = data[:_LOOKED_AT]
    half = len(head) // 2
    if not half or len(data) % 2:
        return ""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > 0.4 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.1 * half:
        return "utf-16-be"
    return ""


def _looks_binary(text: str) -> bool:
    head = text[:_LOOKED_AT]
    controls = sum(1 for letter in head if letter < " " and letter not in _HARMLESS)
    controls += sum(1 for letter in head if "\x7f" <= letter <= "\x9f" and letter not in _HARMLESS)
    return controls > _MOST_CONTROLS * len(head)
