"""HeadProposer: drafts with the model's MTP head, on the head's own cache of the context.

Row i of the head's cache is computed from token i and the model's hidden state before it. The hidden states
come from the prefill and from verified blocks (`StateReceiver`), so rows exist for tokens of the context
only. Rows of guesses are removed after each proposal. The head's cache belongs to the model's cached
sequence, which truncates and copies it with its own.

Where hidden states are not available (a prefix that was read without the head or loaded from disk, the first
token after a truncation), rows are missing, which can make guesses worse and nothing else. Tokens that a
sparse prefill skipped have none, too. Worker's main thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from core.drafting.draft_model import NO_PROPOSAL, Proposal
from core.kv.cached_sequence import CachedSequence, shared_prefix
from core.kv.mlx_lm_caches import full_cache, leaves
from core.models.mtp import MtpHead
from core.models.parts import SplitModel

# Rows that wait for the next proposal; a prefill's chunks are read at once.
_WAITING_ROWS = 64


class HeadProposer:
    """Serves one answer after the other; a `StateReceiver`. `split`: the model of `head`."""

    def __init__(self, head: MtpHead, split: SplitModel) -> None:
        self.split = split
        self._head = head
        self._sequence: CachedSequence | None = None
        self._context: list[int] = []
        # Positions of waiting rows, the states before them [rows, size], and the end of the known rows.
        self._waiting: list[tuple[list[int], mx.array]] = []
        self._end = 0

    def begin(self, sequence: CachedSequence, prompt: Sequence[int]) -> None:
        """Starts with the context `prompt`; the head's rows of another context are removed."""
        self._sequence, self._context, self._waiting = sequence, list(prompt), []
        if sequence.head is None:
            sequence.head = CachedSequence(full_cache)
        own = sequence.head
        shared = shared_prefix(own.tokens, prompt)
        if shared < len(own.tokens):
            own.truncate(shared)
        self._end = len(own.tokens)
        newest = sequence.columns.position(sequence.columns.count - 1) if sequence.columns.count else -1
        if sequence.state is not None and sequence.state[0] != newest:
            sequence.state = None

    def receive(self, positions: Sequence[int], ids: Sequence[int], states: mx.array) -> None:
        sequence = self._sequence
        if sequence is None:
            return
        if positions[-1] >= len(self._context):
            self._context[positions[0] :] = ids
        before = sequence.state
        sequence.state = positions[-1], states[-1:]
        # Rows of the first of several tokens need the state of the token before them.
        start = bisect_left(positions, self._end)
        if start < len(positions):
            if start == 0 and before is not None and before[0] < positions[0]:
                rows = mx.concatenate([before[1], states[:-1]])
            else:
                start = max(start, 1)
                rows = states[start - 1 : -1]
            if start < len(positions):
                self._waiting.append((list(positions[start:]), rows))
                self._end = positions[-1] + 1
        if sum(len(each) for each, _ in self._waiting) > _WAITING_ROWS:
            self._read_waiting()

    def end(self) -> None:
        """Reads the answer's last rows, so that the next turn has them."""
        self._read_waiting()
        self._sequence, self._waiting = None, []

    def propose(self, context: Sequence[int], count: int) -> Proposal:
        """Up to `count` greedy ids after `context`. Empty if the newest hidden state is not available."""
        sequence, last = self._sequence, len(context) - 1
        if count < 1 or sequence is None or sequence.head is None:
            return NO_PROPOSAL
        if sequence.state is None or sequence.state[0] != last - 1:
            return NO_PROPOSAL
        own = sequence.head
        self._context[last:] = context[last:]
        if len(own.tokens) > last:
            own.truncate(last)
        self._read_waiting()
        state = sequence.state[1][None]
        token = mx.array(list(context[last:]))
        ids: list[mx.array] = []
        likely: list[mx.array] = []
        second: list[mx.array] = []
        for depth in range(count):
            state = self._rows(token, state)
            logits = self.split.output(state)[0, -1].astype(mx.float32)
            best = mx.argmax(logits, keepdims=True)
            total = mx.logsumexp(logits)
            token = best
            ids.append(token)
            likely.append(mx.exp(logits[best] - total))
            if not depth:
                others = mx.where(mx.arange(len(logits)) == best, -mx.inf, logits)
                next_best = mx.argmax(others, keepdims=True)
                second = [next_best, mx.exp(logits[next_best] - total)]
        mx.eval(*ids, *likely, *second)
        found: Any = mx.concatenate(ids).tolist()
        chances: Any = mx.concatenate(likely).tolist()
        other: Any = mx.concatenate(second).tolist()
        own.append_at(context, np.array([last], np.int32))
        self._end = last + 1
        for entry in leaves(own.cache):
            entry.trim(count - 1)  # type: ignore[attr-defined]
        return Proposal(found, chances, int(other[0]), float(other[1]))

    def _read_waiting(self) -> None:
        """Reads the rows that wait; only their keys and values are computed."""
        if not self._waiting or self._sequence is None or self._sequence.head is None:
            return
        own = self._sequence.head
        positions = [position for each, _ in self._waiting for position in each]
        states = mx.concatenate([rows for _, rows in self._waiting])
        self._waiting = []
        self._rows(mx.array([self._context[position] for position in positions]), states[None])
        own.append_at(self._context, np.array(positions, np.int32))
        own.settle()
        if self._sequence.state is not None and len(positions) > _WAITING_ROWS:
            # A copy: a slice would keep the states of the whole chunk.
            position, newest = self._sequence.state
            self._sequence.state = position, newest + 0
            mx.eval(self._sequence.state[1])

    def _rows(self, ids: mx.array, states: mx.array) -> mx.array:
        """The head's hidden states [1, n, size] for `ids` and the `states` before them [1, n, size]."""
        assert self._sequence is not None
        assert self._sequence.head is not None
        (entry,) = self._sequence.head.cache
        return self._head(self.split.embed(ids[None]), states, entry)
