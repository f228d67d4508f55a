"""AnswerRows: what the choice at each row of a block goes by, beside its logits: its own past.

A block is known tokens (the lead) and a draft; its rows are the last known token and the draft's
nodes. A row's past is the context, the lead and the nodes on the path to it, and nothing else, so
a drafted run goes by the same as a plain one. Worker's main thread; lazy MLX arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from core.decoding.sampling import PENALTY_WINDOW_TOKENS, Rows, Sampler
from core.drafting.draft import Draft
from core.kv.cached_sequence import CachedSequence


class AnswerRows:
    """Of one answer, whose context but for its last token is in `sequence`.

    The last `begun` tokens of the context are the answer's own: it goes on behind them.
    """

    def __init__(self, sequence: CachedSequence, sampler: Sampler, begun: int = 0) -> None:
        self._sequence = sequence
        self._sampler = sampler
        self._start = len(sequence.tokens) + 1 - begun
        self._counts = np.zeros(0, dtype=np.float32)
        # The answer's tokens that are counted.
        self._counted: list[int] = []

    def of(self, lead: Sequence[int], draft: Draft, unknown: mx.array | None, vocabulary: int) -> Rows:
        """The rows of `lead` and `draft`; `unknown`, [1], is a token that is still being computed.

        It stands for a lead, then. `vocabulary` is the width of the logits.
        """
        start = len(self._sequence.tokens) + (1 if unknown is not None else len(lead))
        depths = [0]
        for parent in draft.parents:
            depths.append(depths[parent + 1] + 1)
        return Rows(
            [start + depth for depth in depths],
            self._windows(lead, draft, unknown) if self._sampler.penalises else None,
            self._answer_counts(lead, draft, unknown, vocabulary) if self._sampler.counts else None,
        )

    def _windows(self, lead: Sequence[int], draft: Draft, unknown: mx.array | None) -> mx.array:
        """For each row the last ids of its own path.

        All rows see equally far back. A path that is shorter than the longest one begins with its first
        id again: the penalty asks whether an id is there, never how often.
        """
        context = self._sequence.tokens[-PENALTY_WINDOW_TOKENS:]
        if unknown is not None:
            known = mx.array(context[-(PENALTY_WINDOW_TOKENS - 1) :], dtype=mx.uint32)
            return mx.concatenate([known, unknown.astype(mx.uint32)])[None]
        paths: list[list[int]] = [[*context, *lead]]
        for token, parent in zip(draft.tokens, draft.parents):
            paths.append([*paths[parent + 1], token])
        size = min(PENALTY_WINDOW_TOKENS, max(map(len, paths)))
        seen = [path[-size:] for path in paths]
        return mx.array([path[:1] * (size - len(path)) + path for path in seen], dtype=mx.uint32)

    def _answer_counts(
        self, lead: Sequence[int], draft: Draft, unknown: mx.array | None, vocabulary: int
    ) -> mx.array:
        self._count(lead, vocabulary)
        counts = mx.array(self._counts)[None]
        if unknown is not None:
            return counts.at[0, unknown].add(1.0)
        if not len(draft):
            return counts
        rows: list[int] = []
        ids: list[int] = []
        paths: list[list[int]] = [[]]
        for row, (token, parent) in enumerate(zip(draft.tokens, draft.parents), 1):
            paths.append([*paths[parent + 1], token])
            rows += [row] * len(paths[row])
            ids += paths[row]
        return mx.repeat(counts, 1 + len(draft), axis=0).at[mx.array(rows), mx.array(ids)].add(1.0)

    def _count(self, lead: Sequence[int], vocabulary: int) -> None:
        """Count the answer's tokens up to the end of `lead`, which may be earlier than the last time."""
        if not len(self._counts):
            self._counts = np.zeros(vocabulary, dtype=np.float32)
        held, counted = self._sequence.tokens, self._counted
        known = len(held) + len(lead) - self._start
        for token in counted[known:]:
            self._counts[token] -= 1.0
        del counted[known:]
        at = self._start + len(counted)
        new = [*held[at:], *lead[max(0, at - len(held)) :]]
        for token in new:
            self._counts[token] += 1.0
        counted += new
