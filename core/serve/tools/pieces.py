"""An answer's text in pieces: what is said, and what is called. Pure; fed with text as it comes.

Text that may be the beginning of a call is held back until that is certain, and so is white space, which
belongs to a call if one follows. A call that cannot be parsed is said as it stands: nothing is lost.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from core.events import Tool
from core.serve.tools.parsers import ToolParser

# A call that a grammar forced: see `core.serve.tools.choice`.
_FORCED = re.compile(r'\s*\{\s*"name"\s*:\s*"(?P<name>[^"\\]*)"\s*,\s*"arguments"\s*:\s*')


class Said(Struct, frozen=True):
    """Text of the answer."""

    text: str


class CallBegun(Struct, frozen=True):
    """A function is called. `index` counts the answer's calls from 0; `id` is new for each."""

    index: int
    id: str
    name: str


class CallArguments(Struct, frozen=True):
    """More of the arguments of the call `index`: JSON, in pieces."""

    index: int
    text: str


Piece = Said | CallBegun | CallArguments


class Pieces(Protocol):
    """Makes pieces of text. `calls` counts the calls so far.

    `loose`: a tool's schema was to be kept, and nothing makes the model keep it.
    """

    calls: int
    loose: bool

    def add(self, text: str) -> Iterator[Piece]:
        """More text."""
        ...

    def end(self) -> Iterator[Piece]:
        """There is no more."""
        ...


def new_call_id() -> str:
    """As OpenAI's look."""
    return f"call_{secrets.token_hex(12)}"


class TextOnly:
    """Where nothing can be called, all is said."""

    calls = 0
    loose = False

    def add(self, text: str) -> Iterator[Piece]:
        """More text."""
        if text:
            yield Said(text)

    def end(self) -> Iterator[Piece]:
        """Nothing was held back."""
        return iter(())


class MarkedCalls:
    """Calls between a parser's marks, among text. `most`: how many calls are told; None is all."""

    def __init__(
        self, parser: ToolParser, tools: Sequence[Tool], most: int | None = None, *, loose: bool = False
    ) -> None:
        self.calls = 0
        self.loose = loose
        self._parser = parser
        self._tools = tools
        self._most = most
        self._held = ""
        self._inside = False

    def add(self, text: str) -> Iterator[Piece]:
        """More text."""
        self._held += text
        while True:
            mark = self._parser.end if self._inside else self._parser.start
            at = self._held.find(mark) if mark else -1
            if at < 0:
                break
            before, self._held = self._held[:at], self._held[at + len(mark) :]
            if self._inside:
                yield from self._called(before, mark)
            elif said := before.rstrip():
                yield Said(said)
            self._inside = not self._inside
        if not self._inside:
            yield from self._certain()

    def end(self) -> Iterator[Piece]:
        """What was held back; a call that was begun counts if it is whole."""
        held, self._held = self._held, ""
        if self._inside:
            self._inside = False
            yield from self._called(held, "")
        elif held and not (self.calls and not held.strip()):
            yield Said(held)

    def _certain(self) -> Iterator[Piece]:
        if self.calls and not self._held.strip():
            return
        cut = len(self._held.rstrip())
        for length in range(min(len(self._parser.start) - 1, len(self._held)), 0, -1):
            if self._held.endswith(self._parser.start[:length]):
                # White space before what may be a mark, too.
                cut = min(cut, len(self._held[: len(self._held) - length].rstrip()))
                break
        said, self._held = self._held[:cut], self._held[cut:]
        if said:
            yield Said(said)

    def _called(self, text: str, mark: str) -> Iterator[Piece]:
        found = self._parser.parse(text, self._tools)
        if not found:
            yield Said(f"{self._parser.start}{text}{mark}")
        for call in found:
            if self._most is not None and self.calls >= self._most:
                return
            yield CallBegun(self.calls, new_call_id(), call.name)
            yield CallArguments(self.calls, call.arguments)
            self.calls += 1


class ForcedCall:
    """All of the answer is one call, by a grammar; its arguments are told as they are written."""

    loose = False

    def __init__(self) -> None:
        self.calls = 0
        self._held = ""
        self._began = False

    def add(self, text: str) -> Iterator[Piece]:
        """More text."""
        self._held += text
        if not self.calls:
            head = _FORCED.match(self._held)
            if head is None:
                return
            self.calls, self._held = 1, self._held[head.end() :]
            yield CallBegun(0, new_call_id(), head["name"])
        if not self._began:
            self._held = self._held.lstrip()
            self._began = bool(self._held)
        # The last brace closes the call, not its arguments.
        stripped = self._held.rstrip()
        cut = len(stripped) - 1 if stripped.endswith("}") else len(stripped)
        told, self._held = self._held[:cut], self._held[cut:]
        if told:
            yield CallArguments(0, told)

    def end(self) -> Iterator[Piece]:
        """What is left is the brace; without a call, all that there is."""
        if not self.calls and self._held:
            yield Said(self._held)
