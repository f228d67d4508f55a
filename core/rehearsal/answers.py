"""GreedyAnswers: many prompts answered at once, one small piece of work a call.

Sixteen rows cost a forward about twice what one costs, so a batch answers several
times faster than one prompt after the other. Rows come and go as answers end (mlx-lm's own
continuous batching). A model whose cache cannot be batched answers one prompt at a time.

At every place of an answer the model's likeliest ids are kept with their probabilities: that is
what a table is counted from, since one place says more that way than its winner alone.

MLX's thread only. Dropping the object in the middle loses the answers under way and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.generate import BatchGenerator, generate_step
from msgspec import Struct
from numpy.typing import NDArray

from core.errors import BrokenLogitsError
from core.models.loader import LoadedModel

# Ids kept at a place: what lies behind the eighth is under a tenth of the mass almost everywhere.
TOP = 8


class Answered(Struct, frozen=True):
    """One answer. `out` ends with the stop id, if it came to one.

    `tops[i]` are the model's likeliest ids at the place of `out[i]`, best first, and `shares[i]`
    their probabilities.
    """

    key: int
    prompt: list[int]
    out: list[int]
    tops: list[list[int]]
    shares: list[list[float]]


class _Growing(Struct):
    key: int
    prompt: list[int]
    out: list[int] = []
    tops: list[list[int]] = []
    shares: list[list[float]] = []

    def add(self, token: int, log_probabilities: NDArray[np.float32]) -> None:
        ids, shares = likeliest(log_probabilities)
        self.out.append(token)
        self.tops.append(ids)
        self.shares.append(shares)

    def done(self) -> Answered:
        return Answered(self.key, self.prompt, self.out, self.tops, self.shares)


class GreedyAnswers:
    """`ask` prompts, then call `step` until `busy` is False.

    `batch`: answers under way at once. `chunk_tokens`: prompt tokens of a row that one step reads.
    """

    def __init__(self, loaded: LoadedModel, *, batch: int, max_tokens: int, chunk_tokens: int = 512) -> None:
        self._loaded = loaded
        self._max_tokens = max_tokens
        self._chunk_tokens = chunk_tokens
        self._rows: dict[int, _Growing] = {}
        self._waiting: deque[_Growing] = deque()
        self._single: Generator[tuple[Any, Any], None, None] | None = None
        self._batch: BatchGenerator | None = None
        if batch > 1 and all(hasattr(entry, "merge") for entry in loaded.new_cache()):
            self._batch = BatchGenerator(
                loaded.model,
                max_tokens=max_tokens,
                stop_tokens=[[stop] for stop in loaded.eos],
                completion_batch_size=batch,
                prefill_batch_size=min(4, batch),
                prefill_step_size=chunk_tokens,
            )

    @property
    def waiting(self) -> int:
        """Prompts asked and not yet answered."""
        return len(self._rows) + len(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether a step has something to do."""
        return self.waiting > 0

    def ask(self, key: int, prompt: Sequence[int]) -> None:
        """Queue a prompt of at least one id. `key` comes back with its answer."""
        row = _Growing(key, list(prompt))
        if self._batch is None:
            self._waiting.append(row)
        else:
            (uid,) = self._batch.insert([row.prompt])
            self._rows[uid] = row

    def step(self) -> list[Answered]:
        """One forward pass, or two; the answers that ended with it. Raises `BrokenLogitsError`."""
        return self._step_single() if self._batch is None else self._step_batch(self._batch)

    def close(self) -> None:
        """Drop everything that is under way."""
        if self._batch is not None:
            self._batch.close()
        self._rows, self._single = {}, None
        self._waiting.clear()

    def _step_batch(self, batch: BatchGenerator) -> list[Answered]:
        ended = []
        for response in batch.next()[1]:
            row = self._rows[response.uid]
            row.add(int(response.token), _log_probabilities(response.logprobs))
            if response.finish_reason is not None:
                ended.append(self._rows.pop(response.uid).done())
        return ended

    def _step_single(self) -> list[Answered]:
        if not self._waiting:
            return []
        row = self._waiting[0]
        if self._single is None:
            self._single = generate_step(
                mx.array(row.prompt),
                self._loaded.model,
                max_tokens=self._max_tokens,
                prompt_cache=self._loaded.new_cache(),
                prefill_step_size=self._chunk_tokens,
            )
        token, log_probabilities = next(self._single)
        row.add(int(token), _log_probabilities(log_probabilities))
        if len(row.out) < self._max_tokens and row.out[-1] not in self._loaded.eos:
            return []
        self._single = None
        return [self._waiting.popleft().done()]


def likeliest(log_probabilities: NDArray[np.float32]) -> tuple[list[int], list[float]]:
    """The `TOP` likeliest ids of one row and their probabilities, best first, rounded to 1e-4."""
    few = min(TOP, len(log_probabilities))
    best = np.argpartition(log_probabilities, -few)[-few:]
    best = best[np.argsort(-log_probabilities[best], kind="stable")]
    return best.tolist(), [round(float(share), 4) for share in np.exp(log_probabilities[best])]


def _log_probabilities(row: mx.array) -> NDArray[np.float32]:
    """Raises `BrokenLogitsError`: of logits that are not numbers no probability is one."""
    found = np.array(row.astype(mx.float32))
    if np.isnan(found).any():
        raise BrokenLogitsError
    return found
