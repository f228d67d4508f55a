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
from core.prefill.layout import Layout, Passages
from core.prefill.read import Positions
from core.prefill.words import Array, Words, asked_by, clearness, matching, words_of
from core.settings.prefill import Prefill

_MOST_SOURCES = 3
# A statement may begin in one passage and end in the next.
_MOST_PASSAGES = 3
# Relative to the best score: the minimum of a further source, and of a neighbour that is part of one.
_LEAST = 0.5
_BELONGS = 0.7
# The least `clearness`. `python -m tests.tuning sources` counts quotations below it, and those of other texts
# above it.
_CLEAR = 7.0
# The least share of a sentence's words, weighted by rarity, that the best passage has. Polite phrases share
# only small words with a text, however long they are.
_SHARED = 0.5


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
    # Some models have more rows than their tokenizer has tokens.
    pieces = [piece or "" for piece in loaded.tokenizer.convert_ids_to_tokens(list(answer))]
    said = words_of(pieces)
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
    if not scores.any() or _shared(words, said, _sentences(pieces), passages, int(scores.argmax())) < _SHARED:
        return ()
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
        taken[max(0, first - 1) : last + 2] = True  # neighbours are not further sources
        own = np.arange(passages.firsts[first], passages.firsts[last] + passages.lengths[last])
        own = own[in_documents[own]]
        most = np.bincount(layout.source[own]).argmax()  # one of fixed length can exceed a document's end
        own = own[layout.source[own] == most]
        found.append(layout.passage(int(own[0]), int(own[-1]) + 1, kept=True, score=float(scores[at])))
    return tuple(found)


def _sentences(pieces: Sequence[str]) -> Array:
    """The sentence number of each piece of an answer."""
    ends = np.array([any(mark in piece for mark in ".!?\n。！？") for piece in pieces], dtype=np.int32)
    return np.asarray(np.cumsum(ends) - ends)


def _shared(words: Words, said: Words, sentences: Array, passages: Passages, best: int) -> float:
    """The highest share of a sentence's words that passage `best` or a neighbour has, by their rarity.

    `sentences`: of each token of the answer. A word that the text does not have counts like the rarest.
    """
    hashes, starts = _single(words)
    of = passages.of[words.owners[starts]]
    own, own_starts = _single(said)
    number = sentences[said.owners[own_starts]]
    most = 0.0
    for sentence in np.unique(number):
        total = shared = 0.0
        for word in np.unique(own[number == sentence]):
            holding = np.unique(of[(hashes == word) & (of >= 0)])
            weight = float(np.log(1 + len(passages) / max(1, len(holding))))
            total += weight
            shared += weight * bool((abs(holding - best) <= 1).any())
        most = max(most, shared / total)
    return most


def _single(words: Words) -> tuple[Array, Array]:
    """Hash and start of each single word; pairs follow them in `Words.stems`."""
    count = (len(words.stems.hashes) + 1) // 2
    return words.stems.hashes[:count], words.stems.starts[:count]
