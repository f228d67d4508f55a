"""Pieces: the one way that benches measure: piece by piece, each written down as it comes.

A bench that is stopped, by Ctrl-C or for good, keeps what it measured; the same command goes on
with the rest, and results of other conditions are refused (`journal`). Reports are made of the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from core.bench.environment import Environment
from core.bench.journal import Entry, Journal
from core.system.ctrl_c import STOPPED
from core.system.progress_line import ProgressLine

E = TypeVar("E", bound=Entry)


class BenchPiece(NamedTuple, Generic[E]):
    """What its entry's key will be, and how it is measured."""

    key: tuple[Hashable, ...]
    measure: Callable[[], E]


class PieceProgress(Struct, frozen=True):
    """`done` of `total` pieces are written down."""

    done: int
    total: int

    @property
    def whole(self) -> bool:
        return self.done == self.total

    def status(self, good: bool) -> int:
        """The exit status of a bench that found things `good` or not."""
        return STOPPED if not self.whole else 0 if good else 1

    @property
    def lines(self) -> list[str]:
        """What a report says of a bench that was stopped."""
        if self.whole:
            return []
        return [f"**Stopped after {self.done} of {self.total} pieces.** The same command goes on.", ""]


def conditions(environment: Environment, *others: object) -> str:
    """All that must be the same for two results to be of one measurement."""
    return "; ".join([environment.line, *map(str, others)])


def measure(
    journal: Journal[E], pieces: Sequence[BenchPiece[E]], say: Callable[[E], Iterable[str]], *, quiet: bool
) -> PieceProgress:
    """Measure what `journal` has not yet; each is told on stderr unless `quiet`. Ctrl-C ends it in order."""
    total = len(pieces)
    with ProgressLine(quiet) as line:
        try:
            for number, piece in enumerate(pieces):
                if not journal.has(*piece.key):
                    line.say(f"{number + 1} of {total}: {', '.join(map(str, piece.key))}", now=True)
                    entry = piece.measure()
                    journal.add(entry)
                    for words in say(entry):
                        line.print(words)
        except KeyboardInterrupt:
            done = sum(journal.has(*piece.key) for piece in pieces)
            line.print(f"Stopped. {done} of {total} are in {journal.path}; the same command goes on.")
            return PieceProgress(done, total)
    return PieceProgress(total, total)


def of_run(journal: Journal[E], pieces: Iterable[BenchPiece[E]]) -> Iterator[E]:
    """What is measured of `pieces`, in their order: a journal may hold more than a run asks for."""
    held = {entry.key: entry for entry in journal.all}
    yield from (held[piece.key] for piece in pieces if piece.key in held)
