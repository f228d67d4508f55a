"""Sources: the passages of attached documents that support an answer.

Only text that the model has read counts. They are the passages that match the answer best by words and runs
of characters, with the measure of `core.prefill.words` and the answer in place of the question.
Neighbours are one source. An answer that matches no passage clearly has none. Worker's main thread; no
forward pass of the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from core.events import Passage
from core.models.loader import LoadedModel
from core.prefill.layout import Layout
from core.prefill.read import Positions
from core.prefill.words import Words, asked_by, clearness, matching, words_of
from core.settings.prefill import Prefill

_MOST_SOURCES = 3
# A statement may begin in one passage and end in the next.
_MOST_PASSAGES = 3
# Relative to the best score: the least of another source, and of a neighbour that belongs to one.
_LEAST = 0.5
_BELONGS = 0.7
# The least `clearness`. `python -m tests.tuning sources` counts quotations below it, and those of other texts
# above it.
_CLEAR = 7.0


def sources(
    loaded: LoadedModel,
    layout: Layout,
    words: Words,
    seen: Positions,
    answer: Sequence[int],
    settings: Prefill,
) -> tuple[Passage, ...]:
    """Sources, the best first. `layout`, `words`: the prompt's; `seen` (int32): positions that were read."""
    in_documents = layout.source >= 0
    if not in_documents.any() or not answer:
        return ()
    said = words_of(loaded.tokenizer.convert_ids_to_tokens(list(answer)))
    asked = asked_by(said, np.ones(len(answer), dtype=np.bool_))
    start, end = np.flatnonzero(in_documents)[[0, -1]].tolist()
    passages = layout.passages(start, end + 1, settings)
    passages = replace(passages, of=np.where(in_documents, passages.of, -1))
    if clearness(words, asked, passages) < _CLEAR:
        return ()
    was_seen = np.zeros(len(in_documents), dtype=np.bool_)
    was_seen[seen[seen < len(was_seen)]] = True  # the answer is in the cache as well
    held = np.add.reduceat((was_seen & in_documents)[: end + 1].astype(np.int32), passages.firsts)
    scores = matching(words, asked, passages) * (held > 0)
    best, found, taken = float(scores.max(initial=0.0)), list[Passage](), np.zeros(len(scores), np.bool_)
    for at in np.argsort(-scores, kind="stable").tolist():
        if len(found) == _MOST_SOURCES or scores[at] <= _LEAST * best:
            break
        if taken[at]:
            continue
        first, last = at, at
        while last - first + 1 < _MOST_PASSAGES:
            sides = [n for n in (first - 1, last + 1) if 0 <= n < len(scores) and not taken[n]]
            side = max(sides, key=lambda n: scores[n], default=at)
            if side == at or scores[side] < _BELONGS * scores[at]:
                break
            first, last = min(first, side), max(last, side)
        taken[max(0, first - 1) : last + 2] = True  # neighbours add nothing
        own = np.arange(passages.firsts[first], passages.firsts[last] + passages.lengths[last])
        own = own[in_documents[own]]
        most = np.bincount(layout.source[own]).argmax()  # one of fixed length can exceed a document's end
        own = own[layout.source[own] == most]
        found.append(layout.passage(int(own[0]), int(own[-1]) + 1, kept=True, score=float(scores[at])))
    return tuple(found)
