"""Case: one question about one generated document, with what a right answer contains.

`lead` is how the answer begins; it is put into the assistant's mouth, so that a small model
answers instead of chatting (RULER does the same). `gold` is what should follow it: its
likelihood is measured too, which says more than pass or fail where a model mostly fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

from msgspec import Struct

Count = Callable[[str], int]


class Case(Struct, frozen=True):
    """`answers` are looked for as whole words, whatever their case; `needed` of them make a pass."""

    document: str
    question: str
    lead: str
    answers: tuple[str, ...]
    gold: str
    needed: int = 0  # 0 means all

    def found(self, answer: str) -> int:
        """How many of `answers` the answer contains."""
        patterns = (rf"(?<!\w){re.escape(word)}(?!\w)" for word in self.answers)
        return sum(bool(re.search(pattern, answer, re.IGNORECASE)) for pattern in patterns)

    def passes(self, answer: str) -> bool:
        """Whether the answer contains enough of them."""
        return self.found(answer) >= (self.needed or len(self.answers))


class Task(Struct, frozen=True):
    """`build(rng, room, count)` makes a case whose document has about `room` tokens, never many more.

    `family` is where the task comes from: `adversarial` (the SpecPrefill paper), `ruler`, or our `own`.
    `answer_tokens` is how much an answer may take. `everything` tasks need the whole document:
    sparse prefill is expected to fail them.
    """

    name: str
    family: str
    build: Callable[[Random, int, Count], Case]
    answer_tokens: int = 48
    everything: bool = False


def fill(parts: Iterator[str], room: int, count: Count) -> list[str]:
    """As many parts as fit into `room` tokens, at least one."""
    taken: list[str] = []
    used = 0
    for part in parts:
        used += count(part) + 2  # the blank line between two
        if taken and used > room:
            break
        taken.append(part)
    return taken


def scatter(parts: list[str], planted: list[str], depths: list[float]) -> list[str]:
    """`parts` with each of `planted` as a part of its own, at its depth (0 … 1) of the way through.

    Equal or rising depths keep the order of `planted`.
    """
    result = list(parts)
    for sentence, depth in sorted(zip(planted, depths, strict=True), key=lambda pair: pair[1])[::-1]:
        result.insert(round(depth * len(parts)), sentence)
    return result
