"""Results of calls as text, images and descriptions, from a server's untrusted JSON. Pure, without the
SDK."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any

from core.events.wire import well_formed
from core.tools.messages import RESULT_IMAGE_BYTES, RESULT_TEXT_BYTES, CallResult, ResultImage

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_MOST_PARTS = 10_000
_MOST_IMAGES = 16
_MOST_OTHER = 50
_NAME_CHARACTERS = 200
_ASKS = "The server asks for more input before it answers, which Draftlight does not support."


def call_result(raw: dict[str, Any], seconds: float) -> CallResult:
    """The result in the reply to `tools/call`. Never raises, whatever `raw` contains."""
    if raw.get("resultType") == "input_required":
        return CallResult(_ASKS, is_error=True, seconds=seconds)
    found = _Found()
    parts = raw.get("content")
    parts = parts if isinstance(parts, list) else []
    for part in parts[:_MOST_PARTS]:
        found.add(part if isinstance(part, dict) else {})
    if len(parts) > _MOST_PARTS:
        found.leave_out(f"{len(parts) - _MOST_PARTS:,} further parts")
    structured = raw.get("structuredContent")
    if not found.texts and structured is not None:
        found.texts.append(json.dumps(structured, ensure_ascii=False, indent=2))
    text, is_cut = _bounded(found.texts)
    return CallResult(
        text,
        tuple(found.images),
        raw.get("isError") is True,
        is_cut or found.is_cut,
        seconds,
        tuple(found.other[:_MOST_OTHER]),
    )


class _Found:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images: list[ResultImage] = []
        self.other: list[str] = []
        self.is_cut = False
        self._image_bytes = 0

    def add(self, part: dict[str, Any]) -> None:
        match part:
            case {"type": "text", "text": str(text)}:
                self.texts.append(text)
            case {"type": "image", "data": str(data), "mimeType": str(mime)}:
                self._add_image(data, mime)
            case {"type": "audio"}:
                self.other.append(f"sound ({_short(part.get('mimeType'))})")
            case {"type": "resource_link"}:
                self.other.append(f"link to {_short(part.get('uri'))}")
            case {"type": "resource", "resource": {"text": str(text)}}:
                self.texts.append(text)
            case {"type": "resource", "resource": {"blob": str(blob), **rest}}:
                size = f"{len(blob) * 3 // 4:,} bytes"
                self.other.append(f"file {_short(rest.get('uri'))} ({_short(rest.get('mimeType'))}, {size})")
            case _:
                self.other.append(f"a part of the type “{_short(part.get('type'))}”")

    def leave_out(self, what: str) -> None:
        self.other.append(what)
        self.is_cut = True

    def _add_image(self, data: str, mime: str) -> None:
        mime = mime.strip().lower()
        size = len(data) * 3 // 4
        if mime not in _IMAGES:
            self.other.append(f"image of the type {_short(mime)} ({size:,} bytes)")
        elif len(self.images) >= _MOST_IMAGES or self._image_bytes + size > RESULT_IMAGE_BYTES:
            self.leave_out(f"image of {size:,} bytes")
        else:
            try:
                self.images.append(ResultImage(mime, base64.b64decode(data, validate=True)))
                self._image_bytes += size
            except (binascii.Error, ValueError):
                self.other.append("an image that is not valid base64")


def _bounded(texts: Iterable[str]) -> tuple[str, bool]:
    """`texts` as paragraphs, at most `RESULT_TEXT_BYTES` of UTF-8 with the note about the cut."""
    data = well_formed("\n\n".join(texts)).encode()
    if len(data) <= RESULT_TEXT_BYTES:
        return data.decode(), False
    note = f"\n\n[Cut here: the result has {len(data):,} bytes, and at most {RESULT_TEXT_BYTES:,} are used.]"
    return data[: RESULT_TEXT_BYTES - len(note.encode())].decode("utf-8", "ignore") + note, True


def _short(value: Any) -> str:
    text = well_formed(value) if isinstance(value, str) and value else "unknown"
    text = " ".join(text.split())
    return text if len(text) <= _NAME_CHARACTERS else f"{text[:_NAME_CHARACTERS]}…"
