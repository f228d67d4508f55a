"""What the clients' programs share: where the server is, what is asked, and how cases are run.

A case is a function `case_…` of a program. Programs run in the clients' own environment, not in Draftlight's.
"""

import base64
import json
import os
import struct
import sys
import traceback
import zlib
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel

BASE = os.environ["CLIENTS_BASE"]  # ends in /v1
ROOT = BASE.removesuffix("/v1")
SEES = os.environ["CLIENTS_SEES"]  # of a model that sees
KEY = os.environ["CLIENTS_KEY"]
MODEL = "starter"
# A chunk of the prompt each 64 tokens, so that the line has to be kept alive again and again.
SLOW_READING = {"settings": {"prefill.chunk_tokens": 64}}


class Weather(BaseModel):
    """Everything in it is bounded, so that any model comes to an end."""

    sky: Literal["clear", "cloudy", "rainy"]
    windy: bool


SCHEMA = {
    "type": "object",
    "properties": {"sky": {"enum": ["clear", "cloudy", "rainy"]}, "windy": {"type": "boolean"}},
    "required": ["sky", "windy"],
    "additionalProperties": False,
}
QUESTION = "It rains and the wind howls. What is the weather like?"


def png(width: int, height: int, seed: int) -> bytes:
    """A PNG of coloured stripes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * seed + y * 5 + c * 80) % 256 for x in range(width) for c in range(3))
                    for y in range(height))  # fmt: skip
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


IMAGE = png(40, 24, 7)
IMAGE_ROWS = 15  # of 8 x 8 pixels, in the model that sees
IMAGE_BASE64 = base64.b64encode(IMAGE).decode()
IMAGE_URL = f"data:image/png;base64,{IMAGE_BASE64}"


def long_text(name: str) -> str:
    """About 700 tokens that no other case has read."""
    return " ".join(f"{name} {number}: the tide came in and the tide went out." for number in range(50))


def refused(kind: type[Exception], ask: Callable[[], object]) -> Any:
    """The error of `kind` that `ask` raises."""
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def run(module: dict[str, object]) -> None:
    """Every case of `module`, one line of JSON each; the status says nothing about them."""
    for name, case in list(module.items()):
        if not name.startswith("case_"):
            continue
        try:
            case()  # type: ignore[operator]
            problem = ""
        except Exception:
            problem = traceback.format_exc()
        print(json.dumps({"case": name, "problem": problem}), flush=True)
    sys.stdout.flush()
