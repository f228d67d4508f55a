"""TokenTable: the tokens of one answer and their ranges in its text. No Qt.

The concatenated texts of the tokens are the answer's source. Offsets are Python string indices
into that source and ranges are end-exclusive. Tokens are only appended. A token without text (its
bytes are completed by a later one, or it ended the answer) has an empty range; the next token with
text has the character.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from core.events import Origin, Token


def shown_origin(token: Token, before: Token | None) -> Origin:
    """The class that the window shows for `token`, whose predecessor is `before`.

    A bonus follows at least one accepted token of its step. The worker also counts a token after an entirely
    rejected draft as a bonus; it is shown as a normal one.
    """
    alone = before is None or before.step != token.step or before.origin != "accepted"
    return "normal" if token.origin == "bonus" and alone else token.origin


class TokenTable:
    """Append with `extend`; everything else reads."""

    def __init__(self) -> None:
        self._tokens: list[Token] = []
        self._starts: list[int] = []
        self._parts: list[str] = []
        self._length = 0
        self._per_step: Counter[int] = Counter()
        self._origins: list[Origin] = []
        self._accepted = [0]  # how many of the tokens before each were accepted drafts

    def extend(self, tokens: Sequence[Token]) -> str:
        """Add `tokens`; returns their text."""
        for token in tokens:
            before = self._tokens[-1] if self._tokens else None
            self._origins.append(shown_origin(token, before))
            self._tokens.append(token)
            self._starts.append(self._length)
            self._length += len(token.text)
            self._per_step[token.step] += 1
            self._accepted.append(self._accepted[-1] + (token.origin == "accepted"))
        added = "".join(token.text for token in tokens)
        self._parts.append(added)
        return added

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> Token:
        return self._tokens[index]

    def origin_of(self, index: int) -> Origin:
        """The class that the window shows for that token: see `shown_origin`."""
        return self._origins[index]

    @property
    def tokens(self) -> Sequence[Token]:
        """All of them, in order. Not a copy: do not change it."""
        return self._tokens

    @property
    def text(self) -> str:
        """The whole source."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    @property
    def length(self) -> int:
        """The length of the source."""
        return self._length

    @property
    def steps(self) -> int:
        """Number of model steps that produced tokens."""
        return len(self._per_step)

    def in_step(self, step: int) -> int:
        """How many tokens that step gave."""
        return self._per_step[step]

    def accepted_in(self, tokens: range) -> int:
        """How many of the tokens with these numbers (a step of 1) were accepted drafts."""
        return self._accepted[tokens.stop] - self._accepted[tokens.start] if tokens else 0

    def range_of(self, index: int) -> tuple[int, int]:
        """Where the token's own text is; empty if it has none."""
        start = self._starts[index]
        return start, start + len(self._tokens[index].text)

    def at(self, offset: int) -> int:
        """The token that holds the character at `offset` (0 ≤ offset < length)."""
        # Tokens without text start where the next one does, so the last of equal starts has it.
        return bisect_right(self._starts, offset) - 1

    def shown_by(self, index: int) -> int | None:
        """The token whose text shows this one: itself, or the next with text, or None at the end."""
        for later in range(index, len(self._tokens)):
            if self._tokens[later].text:
                return later
        return None
