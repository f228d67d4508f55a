"""Mail messages (.eml, .emlx), mailboxes (.mbox) and web pages saved as one (.mht). Pure.

The text comes with header fields and the names of attachments.

Of alternatives the HTML text is read, as mail programs show it, and the plain text if that has more words.
All other parts that are texts (Markdown, calendars, patches) are read as they are, unless they are attached;
style sheets, scripts and alternatives for programs only if they have a name. Forwarded messages follow where
they are attached.
"""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from core.documents import strings
from core.documents.html import declared_charset, html_text
from core.documents.limits import Gathered
from core.documents.rtf import rtf_text
from core.documents.text import decode

_SHOWN = ("From", "To", "Cc", "Date")
_FIELDS = (*_SHOWN, "Subject", "MIME-Version", "Content-Type", "Message-ID")
# Limit of a header field, whose decoder takes quadratic time.
_MOST_FIELD_CHARACTERS = 4_000
_MOST_DEPTH = 20
# Types that no mail program or browser shows as text.
_SOURCES = frozenset((
    "text/css", "text/ecmascript", "text/javascript", "text/x-javascript", "text/xsl", "text/watch-html",
    "text/x-amp-html",
))  # fmt: skip
_ENVELOPE = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\n]{1,200}\d{4}[^\n]{0,40}\n(?=[A-Za-z-]{1,60}:)"
)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_LENGTH = re.compile(rb"([0-9]{1,10})\s*\n(?=[A-Za-z-]{1,60}:)")
_ENCODED_WORD = r"=\?[^?\s]{1,80}\?[bq]\?.*?\?="
_ENCODED_WORDS = re.compile(rf"{_ENCODED_WORD}(?:\s*{_ENCODED_WORD})*", re.IGNORECASE | re.DOTALL)


def mail_text(data: bytes, gathered: Gathered) -> str | None:
    """The message; None if `data` has no header fields of one. Raises `TooLongError`."""
    message = email.message_from_bytes(data)
    if not any(name in message for name in _FIELDS):
        return None
    for piece in _message(message, gathered, 1):
        gathered.add(f"{piece}\n\n")
    return gathered.text().strip("\n")


def mailbox_text(data: bytes, gathered: Gathered) -> str:
    """The messages of a mailbox (.mbox) in their order. Raises `TooLongError`."""
    _, *messages = _ENVELOPE.split(data)
    for each in messages:
        if text := mail_text(_QUOTED_FROM.sub(rb"\1", each), gathered.inner()):
            gathered.add(f"{text}\n\n")
    return gathered.text().strip("\n")


def message_of_mac(data: bytes) -> bytes:
    """The message in a file of Apple Mail (.emlx), which has its length before and properties behind it."""
    length = _LENGTH.match(data)
    return data[length.end() : length.end() + int(length[1])] if length else data


def _message(message: Message, gathered: Gathered, depth: int) -> Iterator[str]:
    fields = dict(reversed([(name.lower(), str(value)) for name, value in message.raw_items()]))
    if subject := _field(fields.get("subject", "")):
        yield f"{'#' if depth == 1 else '##'} {subject}"
    lines = ((name, _field(fields.get(name.lower(), ""))) for name in _SHOWN)
    if shown := "\n".join(f"{name}: {value}" for name, value in lines if value):
        yield shown
    yield from _part(message, gathered, depth)


def _part(part: Message, gathered: Gathered, depth: int, outer: str = "") -> Iterator[str]:
    """The text of a part, which is in one of the kind `outer`, and of those inside; a line for each
    attachment.
    """
    kind, inside = part.get_content_type(), part.get_payload()
    if isinstance(inside, list) and depth < _MOST_DEPTH:
        parts = [each for each in inside if isinstance(each, Message)]
        if kind == "message/rfc822":
            for each in parts:
                yield from _message(each, gathered, depth + 1)
        elif kind == "message/delivery-status":
            yield "\n".join(
                f"{name}: {_field(str(value))}" for each in parts for name, value in each.raw_items()
            )
        elif kind == "multipart/alternative":
            yield from _alternative(parts, gathered, depth)
        else:
            for each in parts:
                yield from _part(each, gathered, depth + 1, kind)
        return
    is_attached = part.get_content_disposition() == "attachment"
    name = _field(part.get_filename() or "")
    if kind in _SOURCES and not (name or is_attached):
        return
    text = None if is_attached else _words(part, kind, gathered)
    if text:
        yield text
    if text is None and not (name or is_attached):
        is_picture = kind.startswith("image/")
        if not is_picture or outer != "multipart/related":  # the page has a place for it
            gathered.leave_out("picture" if is_picture else "object")
    elif text is None:
        gathered.leave_out("attachment", place=name or kind)
        yield strings.attachment_left_out(name or kind)


_WORD = re.compile(r"\w+")
_MADE = re.compile(r"\[picture[^\]]*\]|\(\w+:[^\s)]*\)|\b\w+://\S+")


def _alternative(parts: list[Message], gathered: Gathered, depth: int) -> Iterator[str]:
    """The richest of the alternatives unless it has few of the others' words, and parts of other kinds."""
    best: list[str] = []
    others: list[list[str]] = []
    most = 0
    for part in parts:
        found = list(_part(part, gathered, depth + 1))
        is_text = part.get_content_maintype() == "text" and part.get_content_type() != "text/calendar"
        if is_text or part.get_content_maintype() == "multipart":
            count = sum(len(_WORD.findall(_MADE.sub("", text))) for text in found)
            if 2 * count > most:
                best, most = found, max(count, most)
        else:
            others.append(found)
    for found in (best, *others):
        yield from found


def _words(part: Message, kind: str, gathered: Gathered) -> str | None:
    """The text of a part; None if it is not a text."""
    if not kind.startswith("text/"):
        return None
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return None
    charset = part.get_content_charset() or ""
    try:
        if kind == "text/rtf":
            return rtf_text(data, lambda done, total, unit: None, gathered.inner())
        if kind != "text/html":
            return decode(data, charset).text.strip("\n")
        markup = decode(data, charset or declared_charset(data)).text
    except ValueError:
        return None
    return html_text(markup, lambda done, total, unit: None, gathered.inner(), titled=False)


def _field(value: str) -> str:
    """A header field on one line, with its encoded words decoded."""
    raw = value[:_MOST_FIELD_CHARACTERS].encode("utf-8", "surrogateescape")
    return " ".join(_ENCODED_WORDS.sub(_without_encoding, _decoded(raw, "")).split())


def _without_encoding(found: re.Match[str]) -> str:
    try:
        pieces = decode_header(found[0])
    except HeaderParseError:
        return found[0]
    return "".join(
        piece if isinstance(piece, str) else _decoded(piece, charset or "") for piece, charset in pieces
    )


def _decoded(data: bytes, charset: str) -> str:
    try:
        return decode(data, charset).text
    except ValueError:
        return ""
