"""Text of a part of a document that is in a format of its own: HTML, rich text, mail or plain text."""

from __future__ import annotations

from collections.abc import Callable

from core.documents.limits import Gathered, TooLongError, UnreadableError
from core.documents.text import declared_in_text, decode


def mixed_text(
    data: bytes, name: str, gathered: Gathered, word: Callable[[bytes, Gathered], str] | None = None
) -> str:
    """The text of `data`, whose ending in `name` may tell its kind; empty if it cannot be read.

    `word` reads a Word document. Raises `TooLongError`.
    """
    from core.documents.html import declared_charset, html_text
    from core.documents.mail import mail_text
    from core.documents.rtf import rtf_text

    def told(done: int, total: int, unit: str) -> None:
        """Parts are short."""

    ending = name.rpartition(".")[2].lower()
    try:
        if data.startswith(b"PK"):
            return word(data, gathered) if word else ""
        if data.lstrip().startswith(b"{\\rtf"):
            return rtf_text(data, told, gathered)
        if ending in ("mht", "mhtml"):
            return mail_text(data, gathered) or ""
        if ending in ("htm", "html", "xhtml", "dat") or b"<html" in data[:1024].lower():
            return html_text(decode(data, declared_charset(data)).text, told, gathered, titled=False)
        return decode(data, declared_in_text(data)).text.strip("\n")
    except TooLongError:
        raise
    except (UnreadableError, ValueError):
        return ""
