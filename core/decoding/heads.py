"""HeadProposer: drafts with the model's head, on the head's own cache of the context or on the model's.

Row i of the head's cache is computed from token i and the model's hidden state before it. The hidden states
come from the prefill and from verified blocks (`StateReceiver`), so rows exist for tokens of the context
only. Rows of guesses are removed after each proposal. The head's cache belongs to the model's cached
sequence, which truncates and copies it with its own. A head that attends into the model's cache has no rows;
it needs the newest hidden state only.

Where hidden states are not available (a prefix that was read without the head), rows are missing, which can
make guesses worse and nothing else. Tokens that a sparse prefill skipped have none, too. Rows and states are
saved and loaded with the sequence (`core.kv.saved`).
Worker's main thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten

from core.drafting.draft_model import NO_PROPOSAL, Proposal
from core.events import FIRST_IMAGE_ROW
from core.heads.draft_head import DraftHead
from core.kv.cached_sequence import CachedSequence, shared_prefix
from core.kv.mlx_lm_caches import leaves

# Rows that wait for the next proposal; a prefill's chunks are read at once.
_WAITING_ROWS = 64


class _Guess(NamedTuple):
    """The most likely id and its probability, and the second; arrays of one number, not evaluated."""

    id: mx.array
    chance: mx.array
    other: mx.array
    other_chance: mx.array


def _guess(logits: mx.array, columns: mx.array | None) -> _Guess:
    """For one row of logits: the ids `columns` or all."""
    row = logits.astype(mx.float32)
    best, total = mx.argmax(row, keepdims=True), mx.logsumexp(row)
    second = mx.argmax(mx.where(mx.arange(len(row)) == best, -mx.inf, row), keepdims=True)
    ids = [each if columns is None else columns[each] for each in (best, second)]
    return _Guess(ids[0], mx.exp(row[best] - total), ids[1], mx.exp(row[second] - total))


def _identity(source: str) -> str:
    """Names the head at `source`: its path, and when it was changed."""
    try:
        found = Path(source).stat()
    except OSError:
        return source
    return f"{source} {found.st_size} {found.st_mtime_ns}"


class HeadProposer:
    """Serves one answer after the other; a `StateReceiver`."""

    def __init__(self, head: DraftHead) -> None:
        self._head = head
        self.source = head.source  # its file or folder
        self.identity = _identity(head.source)  # changes with it
        self.block_tokens = head.block_tokens  # guessed at once; 0 if one after the other
        self._sequence: CachedSequence | None = None
        self._context: list[int] = []
        # Positions of waiting rows, the states before them [rows, size], and the end of the known rows.
        self._waiting: list[tuple[list[int], mx.array]] = []
        self._end = 0
        self._image_rows = 0  # of the context, which the drafter's own context does not have

    def begin(self, sequence: CachedSequence, prompt: Sequence[int]) -> None:
        """Starts with the context `prompt`; the head's rows of another context are removed."""
        self._sequence, self._context, self._waiting = sequence, list(prompt), []
        self._image_rows = sum(token >= FIRST_IMAGE_ROW for token in prompt)
        sequence.serve_head(self.identity)
        if sequence.head is None and self._head.new_cache is not None:
            sequence.head = CachedSequence(self._head.new_cache)
        if (own := sequence.head) is not None:
            shared = shared_prefix(own.tokens, prompt)
            if shared < len(own.tokens):
                own.truncate(shared)
            self._end = len(own.tokens)
        newest = sequence.columns.position(sequence.columns.count - 1) if sequence.columns.count else -1
        if sequence.state is not None and sequence.state[0] != newest:
            sequence.state = None
        at = len(sequence.tokens)
        if own is not None and sequence.state is None and sequence.keeps_all and len(own.tokens) == at > 1:
            # The next token's row needs the last one's state, which was dropped with what followed it: that
            # token is read again. The head keeps its row.
            sequence.head = None
            sequence.truncate(at - 1)
            sequence.head = own

    @property
    def nbytes(self) -> int:
        """Size of the head's weights."""
        return sum(value.nbytes for _, value in tree_flatten(self._head.module.parameters()))

    def read(self, ids: mx.array, cache: Any, **given: Any) -> tuple[mx.array, mx.array]:
        logits, states = self._head.parts.read(ids, cache, self._head.layers, **given)
        return logits, self._head.fuse(states)[0]

    def receive(self, positions: Sequence[int], ids: Sequence[int], states: mx.array) -> None:
        sequence = self._sequence
        if sequence is None:
            return
        if positions[-1] >= len(self._context):
            self._context[positions[0] :] = ids
        before = sequence.state
        sequence.state = positions[-1], states[-1:]
        if sequence.head is None:
            self._keep_newest(len(positions))
            return
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
        sequence, last = self._sequence, len(context) - 1 + self._image_rows
        if count < 1 or sequence is None:
            return NO_PROPOSAL
        if sequence.state is None or sequence.state[0] != last - 1:
            return NO_PROPOSAL
        self._context[last:] = context[-1:]
        own = sequence.head
        if own is not None:
            if len(own.tokens) > last:
                own.truncate(last)
            self._read_waiting()
        state, token, head = sequence.state[1][None], mx.array(list(context[-1:])), self._head
        block = head.block(token[None], state, own.cache, count) if head.block and own else None
        guesses: list[_Guess] = []
        for depth in range(count):
            if block is None:
                hidden, state = self._step(token, state)
                logits, columns = head.output(hidden)
                guesses.append(_guess(logits[0, -1], columns))
                token = guesses[-1].id
            else:
                guesses.append(_guess(block[0, depth], None))
        first = guesses[0]
        tokens = mx.concatenate([first.other, *(guess.id for guess in guesses)])
        chances = mx.concatenate([first.other_chance, *(guess.chance for guess in guesses)])
        mx.eval(tokens, chances)
        found: Any = tokens.tolist()
        likely: Any = chances.tolist()
        if own is not None:
            own.append_at(self._context, np.array([last], np.int32))
            self._end = last + 1
            for entry in leaves(own.cache) if block is None else ():
                entry.trim(count - 1)  # type: ignore[attr-defined]
        return Proposal(found[1:], likely[1:], found[0], likely[0])

    def _read_waiting(self) -> None:
        """Reads the rows that wait; only their keys and values are computed."""
        if not self._waiting or self._sequence is None or self._sequence.head is None:
            return
        own = self._sequence.head
        positions = [position for each, _ in self._waiting for position in each]
        states = mx.concatenate([rows for _, rows in self._waiting])
        self._waiting = []
        # Rows of images have no embedding; the head sees them through the states only.
        ids = [self._context[position] for position in positions]
        self._step(mx.array([0 if token >= FIRST_IMAGE_ROW else token for token in ids]), states[None])
        own.append_at(self._context, np.array(positions, np.int32))
        own.settle()
        self._keep_newest(len(positions))

    def _keep_newest(self, rows: int) -> None:
        """Copies the newest state after a chunk of `rows`: a slice would keep the states of all of them."""
        assert self._sequence is not None
        if self._sequence.state is not None and rows > _WAITING_ROWS:
            position, newest = self._sequence.state
            self._sequence.state = position, newest + 0
            mx.eval(self._sequence.state[1])

    def _step(self, ids: mx.array, states: mx.array) -> tuple[mx.array, mx.array]:
        """One step of the head over `ids` [n] and the `states` before them [1, n, width]."""
        sequence = self._sequence
        assert sequence is not None
        return self._head.step(ids[None], states, (sequence.head or sequence).cache)
