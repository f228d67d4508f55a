"""The chat that is read from another program's export, and the values of such exports.

None of the programs documents its format, and all of them change: a field that is missing or of another type
is treated as absent, and everything that Draftlight cannot keep is counted in `ArchivedChat.lost`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from core.chat_archives.tree import Node
from core.events.wire import well_formed

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp", ".svg", ".tiff")
# Times before 1990 and after 2200 are errors.
_FIRST_S, _LAST_S = 631_152_000, 7_258_118_400


class ArchivedChat(Struct):
    """A conversation. `created_s` is a Unix time; `system` is its system prompt."""

    source: str
    id: str = ""
    title: str = ""
    created_s: float | None = None
    pinned: bool = False
    system: str = ""
    current: str = ""
    nodes: list[Node] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def clean(text: str) -> str:
    return well_formed(text.replace("\0", "").replace("\r\n", "\n"))


def time_of(value: Any) -> float | None:
    """Unix time of a number of seconds, milli-, micro- or nanoseconds, or of an ISO 8601 text."""
    if isinstance(value, str):
        try:
            number = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return None
    else:
        return None
    for _ in range(3):
        if number > _LAST_S:
            number /= 1000
    return number if _FIRST_S <= number <= _LAST_S else None


def replaced(tags: re.Pattern[str], closing: str, instead: Callable[[re.Match[str]], str], text: str) -> str:
    """`text` with elements replaced, in linear time: behind the last closing tag none is searched for."""
    end = text.rfind(closing) + len(closing)
    return tags.sub(instead, text[:end]) + text[end:] if end >= len(closing) else text


def marker(what: str, name: str = "") -> str:
    name = " ".join(name.split())
    return f"[{what}: {name}]" if name else f"[{what}]"


def lost_file(name: str, lost: Counter[str]) -> str:
    is_image = name.lower().endswith(IMAGE_ENDINGS)
    lost["images" if is_image else "files"] += 1
    return marker("Image" if is_image else "File", name)


def fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall(r"^`{3,}", text, re.M)), default=2)
    fence = "`" * (longest + 1)
    language = language if re.fullmatch(r"[\w+#.-]{1,30}", language) and language != "unknown" else ""
    return f"{fence}{language}\n{text}\n{fence}"
