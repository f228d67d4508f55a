"""Thoughts: where an answer thinks aloud before it answers, found while it is still being written. No Qt.

Models mark their thinking with tags of their own. An opening tag counts at the start of a line,
a closing one wherever it comes; neither counts inside fenced code. Some chat templates write
the opening tag into the prompt: then the answer has only the closing one, at the start of a
line, and all before it was a thought.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

_PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<reflection>": "</reflection>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
}
_OPENING = re.compile(r"^[ \t]*(" + "|".join(map(re.escape, _PAIRS)) + ")", re.M)
_LONE_CLOSING = re.compile(r"^[ \t]*(" + "|".join(map(re.escape, _PAIRS.values())) + ")", re.M)
_LONGEST = max(map(len, _PAIRS.values()))


class Tag(Struct, frozen=True):
    """The source range of a tag and what it does: `reopen` closes a thought that nobody opened."""

    start: int
    end: int
    does: Literal["open", "close", "reopen"]
    closing: str = ""  # what will close the thought that this opens


def find_tag(source: str, start: int, closing: str, *, lone: bool) -> Tag | None:
    """The first tag from `start` on. `closing` ends the open thought; empty if none is open.

    `lone`: whether a closing tag may come that nothing opened.
    """
    if closing:
        at = source.find(closing, start)
        return Tag(at, at + len(closing), "close") if at >= 0 else None
    opening = _OPENING.search(source, start)
    closes = _LONE_CLOSING.search(source, start) if lone else None
    if closes and (opening is None or closes.start() < opening.start()):
        return Tag(closes.start(), closes.end(), "reopen")
    if opening is None:
        return None
    return Tag(opening.start(), opening.end(), "open", _PAIRS[opening.group(1)])


def certain_end(source: str, start: int, closing: str) -> int:
    """Up to where the source is certainly no tag that has only begun."""
    tags = (closing,) if closing else (*_PAIRS, *_PAIRS.values())
    tail = max(start, len(source) - _LONGEST)
    for at in range(tail, len(source)):
        rest = source[at:]
        if not closing and source[source.rfind("\n", 0, at) + 1 : at].strip():
            continue  # only a closing tag may stand behind words
        if any(tag.startswith(rest) for tag in tags):
            return at
    return len(source)
