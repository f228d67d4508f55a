"""Images as clients send them: right ones, and ones that nobody should send. Seeded."""

from __future__ import annotations

import base64
import io
import random
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

_SIZES = ((1, 1), (40, 24), (64, 32), (17, 90), (150, 1), (33, 33))
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
_ADDRESSES = ("https://example.org/a.png", "file:///etc/passwd", "/etc/passwd", "http://127.0.0.1:1/a", "")
_OTHERS = (b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7\n", b"MZ", b"\0" * 64, b"", b"GIF89a")
_CLAIMED = ((100_000, 100_000), (2**31 - 1, 1), (40_000, 40_000), (0, 5))
_BASE64 = ("%%%", "é", "A", "=" * 9, "\0")
_MOST_IMAGES = 100
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def drawn(chance: random.Random) -> bytes:
    """A right file."""
    size = chance.choice(_SIZES)
    image = Pillow.new("RGB", size, tuple(chance.randrange(256) for _ in range(3)))
    stream = io.BytesIO()
    image.save(stream, chance.choice(_FORMATS))
    return stream.getvalue()


def url(data: bytes) -> str:
    """A file as the address that has it."""
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def bad_url(chance: random.Random) -> Any:
    """What a client gives in place of an image, and no server may read as one."""
    whole = drawn(chance)
    match chance.choice(("address", "cut", "other", "bomb", "base64", "type")):
        case "address":
            return chance.choice(_ADDRESSES)
        case "cut":
            return url(whole[: chance.randrange(24)])
        case "other":
            return url(chance.choice(_OTHERS))
        case "bomb":
            return url(
                _claiming(chance.choice(((100_000, 100_000), (2**31 - 1, 1), (40_000, 40_000), (0, 5))))
            )
        case "base64":
            return f"data:image/png;base64,{chance.choice(_BASE64)}"
        case _:
            return chance.choice((None, 7, [], {"uri": url(whole)}, True))


def _claiming(size: tuple[int, int]) -> bytes:
    """A small PNG that says that it is of this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    parts = (
        chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 1, 0, 0, 0, 0)),
        chunk(b"IDAT", zlib.compress(bytes(1_000_000))),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def with_images(chance: random.Random) -> tuple[str, dict[str, Any], bool]:
    """The path and the body of a request with one to three images, and whether all are right ones.

    In the shape of each API, in a question or in a tool's result; rarely far too many.
    """
    count = _MOST_IMAGES + 1 if chance.random() < 0.05 else chance.randint(1, 3)
    urls: list[Any] = (
        [url(drawn(chance))] * count if count > 3 else [url(drawn(chance)) for _ in range(count)]
    )
    is_right = count <= _MOST_IMAGES
    if is_right and chance.random() < 0.6:
        urls[chance.randrange(count)] = bad_url(chance)
        is_right = False
    match chance.choice(("chat", "responses", "messages", "tool")):
        case "chat":
            parts = [{"type": "image_url", "image_url": {"url": each}} for each in urls]
            body: dict[str, Any] = {"messages": [{"role": "user", "content": [*parts, _said("text")]}]}
            return "/v1/chat/completions", body | {"max_tokens": 8}, is_right
        case "tool":
            parts = [{"type": "image_url", "image_url": {"url": each}} for each in urls]
            turns = [
                {"role": "user", "content": "look"},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c", "content": parts},
            ]
            return "/v1/chat/completions", {"messages": turns, "max_tokens": 8}, is_right
        case "responses":
            parts = [{"type": "input_image", "image_url": each} for each in urls]
            turn = {"role": "user", "content": [*parts, _said("input_text")]}
            return "/v1/responses", {"input": [turn], "max_output_tokens": 16}, is_right
        case _:
            parts = [{"type": "image", "source": _source(each)} for each in urls]
            body = {"messages": [{"role": "user", "content": [*parts, _said("text")]}], "max_tokens": 8}
            return "/v1/messages", body, is_right


def _said(kind: str) -> dict[str, str]:
    return {"type": kind, "text": "what is it"}


def _source(given: Any) -> dict[str, Any]:
    if isinstance(given, str) and given.startswith("data:"):
        return {"type": "base64", "media_type": "image/png", "data": given.partition(",")[2]}
    return {"type": "url", "url": given}


def left_files() -> list[str]:
    """Folders of served images that still exist, of any process."""
    return [str(each) for each in Path(tempfile.gettempdir()).glob("draftlight-served-images-*")]
