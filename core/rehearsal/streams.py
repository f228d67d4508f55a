"""Recorded streams: prompts and greedy answers as token ids, to learn from or to replay drafters over.

One JSON object a line, gzipped if the name ends in .gz: `prompt` and `out` are ids, `tops` the
model's likeliest ids at each place of `out`, best first, `shares` their probabilities (both may be
missing), `cls` the kind of prompt.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from core.errors import RequestError


class Stream(Struct, frozen=True):
    """One recorded answer."""

    prompt: list[int]
    out: list[int]
    cls: str = "prompt"
    tops: list[list[int]] = []
    shares: list[list[float]] = []


def read_streams(path: Path) -> list[Stream]:
    """All streams of a file. Raises `RequestError` naming the line."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise RequestError(f"{path} cannot be read: {error}.", "Check the path.") from None
    streams = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            streams.append(msgspec.json.decode(line, type=Stream))
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{path}, line {number}: {error}.", 'A line is like {"prompt": [1], "out": [2]}.'
            ) from None
    if not streams:
        raise RequestError(f"{path} holds no streams.", "Write one JSON object a line.")
    return streams


def write_streams(path: Path, streams: Iterable[Stream]) -> None:
    """Write a file that `read_streams` reads."""
    content = b"".join(msgspec.json.encode(stream) + b"\n" for stream in streams)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
