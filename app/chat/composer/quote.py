"""Quote: words of the chat as lines that Markdown shows as quoted, ready to be written under. Pure."""

from __future__ import annotations


def quote_lines(text: str) -> str:
    """`text` with a mark before each line, without empty lines around it."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").splitlines())


def quote_between(text: str, before: str, after: str) -> tuple[str, str]:
    """What to insert between `before` and `after` so that the quote of `text` is a paragraph of its own.

    In two parts: the person goes on writing between them.
    """
    gap = "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    rest = "\n\n" if after and not after.startswith("\n") else ""
    return f"{gap}{quote_lines(text)}\n\n", rest
