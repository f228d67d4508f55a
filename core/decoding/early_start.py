"""Early start: the device begins a forward pass while Python still builds the graph of its later layers.

Building a pass takes some milliseconds, during which a device without work would idle. Nothing is
speculative: the started part belongs to the same graph, so the pass computes the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import mlx.core as mx

from core.kv.mlx_lm_caches import CacheEntry, is_appending, is_window, leaves
from core.kv.positions import Positioned

# Layers between two starts. Each start costs a hand-over to the device, so a model of few layers, which are
# built soon, gains nothing (8 layers: the same speed; 28 layers: 1.05 times).
EVERY_LAYERS = 4
LEAST_LAYERS = 12
# The layer that starts first: until then the device has nothing to do.
FIRST_LAYER = 1


class EarlyStart:
    """The early start of one forward pass. `seconds`: its duration, on a CPU mostly waiting for the device.

    `first_s`: when the first part was started, by `time.perf_counter`; None if none was.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.first_s: float | None = None

    @contextmanager
    def within(self, cache: Sequence[CacheEntry]) -> Iterator[None]:
        """While open, some layers of a pass over `cache` start the graph built up to them (`early_entries`).

        Replaces the entries' `update_and_fetch`, and restores it at the end, also after an exception.
        """
        entries = [_innermost(entry) for entry in early_entries(cache)]
        try:
            for entry in entries:
                entry.update_and_fetch = partial(self._updated, entry.update_and_fetch)
            yield
        finally:
            for entry in entries:
                vars(entry).pop("update_and_fetch", None)

    def _updated(self, update: Any, keys: mx.array, values: mx.array) -> Any:
        begun_s = time.perf_counter()
        if self.first_s is None:
            self.first_s = begun_s
        mx.async_eval(keys, values)
        self.seconds += time.perf_counter() - begun_s
        return update(keys, values)


def early_entries(cache: Sequence[CacheEntry]) -> list[CacheEntry]:
    """The entries whose layers start early, each once; none if the model has few layers.

    The second layer's, and every fourth.
    """
    layers = list(leaves(cache))
    if len(layers) < LEAST_LAYERS:
        return []
    # The last of four layers, which has full attention in hybrid models.
    chosen = [layers[FIRST_LAYER], *layers[EVERY_LAYERS - 1 :: EVERY_LAYERS]]
    return list({id(entry): entry for entry in chosen if is_appending(entry) or is_window(entry)}.values())


def _innermost(entry: Any) -> Any:
    return entry.entry if isinstance(entry, Positioned) else entry
