"""Web archives of Safari (.webarchive) to text: the page, and the frames inside of it.

An archive is a property list with each resource and its type.
"""

from __future__ import annotations

import plistlib
from collections.abc import Iterator
from typing import Any

from core.documents.html import declared_charset, html_text
from core.documents.limits import DamagedError, Gathered, Told
from core.documents.text import decode

_MOST_FRAMES = 100


def webarchive_text(data: bytes, told: Told, gathered: Gathered) -> str:
    """The text of the page. Raises `UnreadableError`."""
    try:
        archive = plistlib.loads(data)
    except Exception as error:  # a damaged list fails in many ways
        raise DamagedError from error
    resources = list(_resources(archive, _MOST_FRAMES))
    if not resources:
        raise DamagedError
    for resource in resources:
        if text := _text(resource, told, gathered.inner()):
            gathered.add(f"{text}\n\n")
    return gathered.text().strip("\n")


def _resources(archive: Any, most: int) -> Iterator[dict[str, Any]]:
    """The main resource of an archive, and those of its frames."""
    waiting = [archive]
    while waiting and most:
        each = waiting.pop(0)
        most -= 1
        if isinstance(each, dict):
            main, frames = each.get("WebMainResource"), each.get("WebSubframeArchives")
            waiting += frames if isinstance(frames, list) else []
            if isinstance(main, dict) and isinstance(main.get("WebResourceData"), bytes):
                yield main


def _text(resource: dict[str, Any], told: Told, gathered: Gathered) -> str:
    data, kind = resource["WebResourceData"], str(resource.get("WebResourceMIMEType", "text/html"))
    charset = str(resource.get("WebResourceTextEncodingName", ""))
    try:
        if "html" in kind or "xml" in kind:
            return html_text(decode(data, charset or declared_charset(data)).text, told, gathered)
        if kind.startswith("text/"):
            return decode(data, charset).text.strip("\n")
    except ValueError:
        pass
    gathered.leave_out("picture" if kind.startswith("image/") else "object")
    return ""
