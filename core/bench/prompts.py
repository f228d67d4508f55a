"""Prompts files of the benches: JSON lines with `prompt`, or `turns`, and, if there are kinds, `class`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from core.errors import RequestError
from core.system.paths import resources_dir


class BenchPrompt(Struct, frozen=True, rename={"kind": "class"}):
    """One line. Other fields of the line are ignored.

    `prompt` is text to go on with. `turns` are a conversation's questions instead, and go through
    the chat template.
    """

    prompt: str = ""
    kind: str = "prompt"
    turns: tuple[str, ...] = ()


def default_prompts() -> Path:
    """Draftlight's own three classes: a passage, code, and JSON records."""
    return resources_dir() / "bench" / "three-class.jsonl"


def read_prompts(path: Path) -> list[BenchPrompt]:
    """The prompts of a file. Raises `RequestError` naming the line."""
    prompts = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                prompt = msgspec.json.decode(line, type=BenchPrompt)
                if bool(prompt.prompt) == bool(prompt.turns):
                    raise msgspec.ValidationError("it needs either `prompt` or `turns`")
                prompts.append(prompt)
            except msgspec.DecodeError as error:
                raise RequestError(
                    f"{path}, line {number}: {error}.", 'A line is like {"class": "code", "prompt": "…"}.'
                ) from None
    if not prompts:
        raise RequestError(f"{path} holds no prompts.", "Write one JSON object a line.")
    return prompts


def fingerprint(path: Path) -> str:
    """What tells this file's content from another's of the same name. Raises `OSError`."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
