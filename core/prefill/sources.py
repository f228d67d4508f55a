"""Sources: the passages of attached documents that an answer stands on.

Those that share most with what the answer says, in words and in runs of characters, the rare ones counting
most: the measure by which passages are chosen to be read (`core.prefill.scorers.lexical`), with the answer
in the question's place. Only what the model had before it can be a source. Neighbours are one source. An
answer that says nothing of the documents has none. Worker's main thread; no forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.events import Passage
from core.models.loader import LoadedModel
from core.prefill.layout import Layout
from core.prefill.read import Positions
from core.prefill.scorers.lexical import clearness, matching

_MOST_SOURCES = 3
# A passage is a small part of a page, and what an answer says may begin in one and end in the next.
_PASSAGE_TOKENS = 32
_MOST_PASSAGES = 3
# Of the best one's score: the least of another source, and of a neighbour that belongs to one.
_LEAST = 0.5
_BELONGS = 0.7
# By `clearness`. `bench sources` counts quotations that have less, and those of other texts that have more.
_CLEAR = 7.0


def sources(
    loaded: LoadedModel, ids: Sequence[int], layout: Layout, seen: Positions, answer: Sequence[int]
) -> tuple[Passage, ...]:
    """The best first. `layout` is of `ids`; `seen` (int32) are the positions that the model has read."""
    places = np.flatnonzero(layout.source >= 0)
    if not len(places) or not answer:
        return ()
    convert = loaded.tokenizer.convert_ids_to_tokens
    pieces = [*convert([ids[at] for at in places.tolist()]), *convert(list(answer))]
    asks = np.arange(len(pieces)) >= len(places)
    if clearness(pieces, asks, _PASSAGE_TOKENS) < _CLEAR:
        return ()
    starts = np.arange(0, len(places), _PASSAGE_TOKENS)
    scores = matching(pieces, asks, _PASSAGE_TOKENS)[: len(starts)]
    was_seen = np.zeros(len(ids), dtype=np.bool_)
    was_seen[seen[seen < len(ids)]] = True  # by now the answer is in the cache, too
    scores = scores * (np.add.reduceat(was_seen[places].astype(np.int32), starts) > 0)
    best, found, taken = float(scores.max(initial=0.0)), list[Passage](), np.zeros(len(starts), np.bool_)
    for at in np.argsort(-scores, kind="stable").tolist():
        if len(found) == _MOST_SOURCES or scores[at] <= _LEAST * best:
            break
        if taken[at]:
            continue
        first, last = at, at
        while last - first + 1 < _MOST_PASSAGES:
            sides = [n for n in (first - 1, last + 1) if 0 <= n < len(starts) and not taken[n]]
            side = max(sides, key=lambda n: scores[n], default=at)
            if side == at or scores[side] < _BELONGS * scores[at]:
                break
            first, last = min(first, side), max(last, side)
        taken[max(0, first - 1) : last + 2] = True  # what touches it adds nothing
        own = places[first * _PASSAGE_TOKENS : (last + 1) * _PASSAGE_TOKENS]
        most = np.bincount(layout.source[own]).argmax()  # a passage can reach over the end of a document
        found.append(_passage(layout, own[layout.source[own] == most], scores[at]))
    return tuple(found)


def _passage(layout: Layout, places: Positions, score: float) -> Passage:
    """Tokens of one document."""
    return Passage(
        *(int(places[0]), int(places[-1]) + 1, True, float(score), int(layout.source[places[0]])),
        *(int(layout.first_char[places].min()), int(layout.last_char[places].max())),
    )
