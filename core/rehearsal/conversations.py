"""What a model is asked when it rehearses: prompts with their follow-ups, as JSON lines.

    {"class": "howto", "prompt": "How do I …?", "then": ["What do I need to buy?"]}

`then` are the user's later turns; each is asked after the model's own answer to what came before.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from core.errors import RequestError
from core.system.paths import resources_dir


class RehearsedConversation(Struct, frozen=True, rename={"kind": "class"}):
    """One line. Other fields of the line are ignored."""

    prompt: str
    kind: str = "prompt"
    then: tuple[str, ...] = ()


def default_conversations() -> Path:
    """Draftlight's own prompts, written for rehearsal: see resources/tables/README.md."""
    return resources_dir() / "rehearsal" / "prompts.jsonl"


def read_conversations(path: Path) -> list[RehearsedConversation]:
    """The conversations of a file. Raises `RequestError` naming the line."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            held = msgspec.json.decode(line, type=RehearsedConversation)
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{path}, line {number}: {error}.", 'A line is like {"class": "code", "prompt": "…"}.'
            ) from None
        if not held.prompt.strip() or not all(turn.strip() for turn in held.then):
            raise RequestError(f"{path}, line {number}: it asks nothing.", "Give every turn some words.")
        found.append(held)
    if not found:
        raise RequestError(f"{path} holds no prompts.", "Write one JSON object a line.")
    return found
