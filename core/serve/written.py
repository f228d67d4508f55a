"""Written: what an answer's tokens come to, in order: its thought, what it says, what it calls. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from core.events import Token
from core.serve.thoughts import Thoughts
from core.serve.tools.pieces import Piece, Pieces


class Thought(Struct, frozen=True):
    """More of what is thought before the answer."""

    text: str


class Written:
    """Of one answer, whose text without its thought comes in `pieces`. Fed with tokens as they come."""

    def __init__(self, pieces: Pieces) -> None:
        self._thoughts = Thoughts()
        self._pieces = pieces
        self.thought_tokens = 0

    @property
    def calls(self) -> int:
        """How many calls there are so far."""
        return self._pieces.calls

    @property
    def loose(self) -> bool:
        """Whether a tool's schema was to be kept that nothing keeps."""
        return self._pieces.loose

    def add(self, tokens: Sequence[Token]) -> Iterator[Thought | Piece]:
        """More tokens. A thought comes before all else, in one piece a call."""
        thought, text = "", ""
        for token in tokens:
            more_thought, more = self._thoughts.add(token.text)
            self.thought_tokens += self._thoughts.is_open or bool(more_thought)
            thought, text = thought + more_thought, text + more
        yield from self._told(thought, text)

    def end(self) -> Iterator[Thought | Piece]:
        """There are no more tokens: what was held back."""
        yield from self._told(*self._thoughts.end())
        yield from self._pieces.end()

    def _told(self, thought: str, text: str) -> Iterator[Thought | Piece]:
        if thought:
            yield Thought(thought)
        yield from self._pieces.add(text)
