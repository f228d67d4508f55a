"""Shard: this machine's part of a model, and one forward of it that every machine computes alike.

MLX computes what somebody asks for, in an order that follows from what was asked. Where layers wait for other
machines, all must ask for the same, or they wait for each other for ever. So a forward asks, on each machine,
for the state of the caches and for what the last layer gives, before the head: of that only the leader wants
logits, and only where a token is chosen. A head that is shared among the machines waits for them too, so
there the logits are asked for. Main thread of leader or follower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.nn.layers.distributed import AllToShardedLinear, QuantizedAllToShardedLinear
from mlx_lm.models.cache import make_prompt_cache

from core.errors import ClusterError
from core.kv.entries import kind_of, leaves
from core.models.rope import Rotation, rotations

# Where a cache stands after a forward that the model's code refused, on this machine as on the others.
RAISED = (-2, -2)


class Shard:
    """`model` is mlx-lm's, after it was split."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.rotations: list[Rotation] = rotations(model)
        self._owner, self._key = _body(model)
        self._shares_head = any(
            isinstance(module, AllToShardedLinear | QuantizedAllToShardedLinear)
            for name, module in model.named_modules()
            if name.endswith("lm_head")
        )

    def new_cache(self) -> list[Any]:
        """An empty cache, one entry for each layer that is here."""
        cache: list[Any] = make_prompt_cache(self.model)
        return cache

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of cache entries, sorted."""
        return tuple(sorted({kind_of(entry) for entry in leaves(self.new_cache())}))

    def forward(self, ids: mx.array, cache: Sequence[Any]) -> tuple[mx.array, list[Any]]:
        """Logits [1, w, vocabulary] after `ids` [1, w], lazy, and what every machine must compute now."""
        given: list[mx.array] = []
        with self._watched(given):
            logits: mx.array = self.model(ids, cache=cache)
        last = logits if self._shares_head or len(given) != 1 else given[0]
        return logits, [last, [entry.state for entry in cache]]

    @contextmanager
    def _watched(self, given: list[mx.array]) -> Iterator[None]:
        body = self._owner[self._key]

        def noting(*args: Any, **options: Any) -> mx.array:
            given.append(body(*args, **options))
            return given[-1]

        try:
            self._owner[self._key] = _Noting(body, noting)
            yield
        finally:
            self._owner[self._key] = body


class _Noting:
    """Stands in for `body` during a forward."""

    def __init__(self, body: nn.Module, call: Any) -> None:
        self._body = body
        self._call = call

    def __call__(self, *args: Any, **options: Any) -> mx.array:
        given: mx.array = self._call(*args, **options)
        return given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)


def _body(model: nn.Module) -> tuple[Any, str]:
    """The module that holds the layers, as its owner's item: what comes after it is the head."""
    for _, owner in model.named_modules():
        for key, part in owner.items():
            if isinstance(part, nn.Module) and isinstance(part.get("layers"), list):
                return owner, key
    raise ClusterError(f"{type(model).__module__} is built in a way that cannot be split here.")


def standing(cache: Sequence[Any]) -> tuple[int, int]:
    """Where appending entries and windows stand; −1 for a kind that is not there."""
    found = {"appending": -1, "window": -1}
    for entry in leaves(cache):
        kind = kind_of(entry)
        if kind in found:
            found[kind] = max(found[kind], int(entry.offset))
    return found["appending"], found["window"]
