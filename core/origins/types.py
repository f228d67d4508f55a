"""Types of origins: sources, places, runs, facts, and what was read of a source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from core.events import Passage

FactKind = Literal["number", "date", "amount", "identifier", "quotation", "name"]
FactState = Literal["document", "skipped", "question", "computed", "nowhere"]
Spans = Sequence[tuple[int, int]]
# A longer text in a message is a source.
PASTED_CHARACTERS = 400


class Source(Struct, frozen=True):
    """A text that the model was given: a document, a pasted text, a tool result."""

    name: str
    text: str


class Place(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of the text of source number `source`, as it was given."""

    source: int
    start: int
    end: int


class Run(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of the answer, copied from `place`.

    `others`: further places with the same words, by source and position; at most 64 of a source.
    """

    start: int
    end: int
    place: Place
    others: tuple[Place, ...] = ()


class Fact(Struct, frozen=True):
    """A figure or name: characters `start` to `end` (end-exclusive) of the answer.

    `state` says where it comes from:

    - `document`: in a source, at `place`, in a part that was read; neither converted nor rounded. A
      reference ("§ 9") only where the source has its number as a reference, or as that of a heading or list
      item. A count without a unit ("three lifts") only where the source counts with the same number.
    - `skipped`: in a source, at `place`, but only in parts that were not read.
    - `question`: in the user's messages. `computed`: it follows from figures of the same sentence that the
      answer names, also by a share in words (half of £38), or repeats such a result. At least one of these
      figures has a source; another may be wrong, and is then marked itself.
    - `nowhere`: in none of these. The only state that is marked in an answer.

    `key` is equal for equal facts of several answers.
    """

    start: int
    end: int
    kind: FactKind
    state: FactState
    place: Place | None = None
    key: str = ""


class Origins(Struct, frozen=True):
    """Runs and facts of an answer. Runs are in order and do not overlap, and so are facts; a fact may be in a
    run.
    """

    runs: tuple[Run, ...] = ()
    facts: tuple[Fact, ...] = ()


def spans_read(passages: Iterable[Passage], source: int, characters: int) -> Spans | None:
    """Character ranges of a document that were read: all but the skipped passages of a reading map.

    `source`: the document's number in `Passage.source`; `characters`: its length. None if all was read.
    """
    skipped = sorted(
        (each.first_char, each.last_char) for each in passages if each.source == source and not each.kept
    )
    if not skipped:
        return None
    read, at = [], 0
    for start, end in skipped:
        if start > at:
            read.append((at, start))
        at = max(at, end)
    if at < characters:
        read.append((at, characters))
    return read
