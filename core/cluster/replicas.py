"""Replicas: a follower's copies of the leader's caches, changed by the leader's actions.

A replica is a `CachedSequence` with the leader's cache classes for this machine's layers, so the same methods
have the same effect. Token ids are zeros, because a follower needs only their number. Follower's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import mlx.core as mx

from core.cluster.shard import RAISED, Shard, cache_positions
from core.cluster.wire import Action, Begin, Changed, Drop, Forward
from core.decoding.tree import tree_pass
from core.errors import InternalError
from core.kv import mirrored
from core.kv.cached_sequence import CachedSequence
from core.kv.verify_block import VerifyBlock
from core.machine.trials import fill, stand_at

# A forward pass of this width is part of a prompt: its buffers are freed, as on the leader.
_CHUNK_TOKENS = 32
_CLEAR_EVERY = 256


class Replicas:
    """The caches of one `shard`."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._held: dict[int, _Replica] = {}
        self._forwards = 0

    def do(self, actions: Sequence[Action]) -> tuple[int, int]:
        """Applies the actions. Returns the cache positions after the last forward pass."""
        positions = (-1, -1)
        for action in actions:
            match action:
                case Begin(number):
                    self._held[number] = _Replica(CachedSequence(self._shard.new_cache))
                case Drop(number):
                    self._held.pop(number, None)
                case Changed(number, mirrored.Fork(of, length)):
                    self._held[number] = _Replica(self._replica(of).sequence.fork(length))
                case Changed(number, mirrored.Copy(of)):
                    self._replica(number).sequence.cache[:] = deepcopy(self._replica(of).sequence.cache)
                case Changed(number, change):
                    self._change(self._replica(number), change)
                case Forward(number, ids):
                    positions = self._forward(self._replica(number), ids)
        return positions

    def _replica(self, number: int) -> _Replica:
        if number not in self._held:
            raise InternalError(f"The leader used cache {number}, which does not exist.")
        return self._held[number]

    def _forward(self, replica: _Replica, ids: Sequence[int]) -> tuple[int, int]:
        cache = replica.sequence.cache
        hooks, replica.hooks = replica.hooks, nullcontext
        asked: list[Any] = []
        computed = False
        try:
            with hooks():
                _, asked = self._shard.forward(mx.array(list(ids))[None], cache)
                mx.eval(asked)
                computed = True
        except Exception:
            if asked and not computed:
                raise
            # The model's code or a hook raised, as on the leader, which decides what follows.
            if not computed:
                return RAISED
        self._forwards += 1
        if len(ids) >= _CHUNK_TOKENS or self._forwards % _CLEAR_EVERY == 0:
            mx.clear_cache()
        return cache_positions(cache)

    def _change(self, replica: _Replica, change: mirrored.Change) -> None:
        sequence, shard = replica.sequence, self._shard
        match change:
            case mirrored.Append(tokens):
                sequence.append([0] * tokens)
            case mirrored.Skip(tokens):
                sequence.skip([0] * tokens)
            case mirrored.Truncate(length):
                sequence.truncate(length)
            case mirrored.TakeSnapshot():
                sequence.add_snapshot()
            case mirrored.KeepSnapshots(lengths):
                sequence.keep_snapshots(lengths)
            case mirrored.Fill(start, read_tokens, most_tokens):
                fill(sequence.cache, start, read_tokens, most_tokens)
            case mirrored.StandAt(position):
                stand_at(sequence.cache, position)
            case mirrored.Block():
                replica.block = VerifyBlock(sequence.cache)
            case mirrored.Keep(width, rows):
                if replica.block is None:
                    raise InternalError("The leader accepted rows of a block that was not started.")
                replica.block.keep(width, rows)
                replica.block = None
            case mirrored.Tree(parents, lead):
                replica.hooks = lambda: tree_pass(shard.model, sequence.cache, parents, lead, shard.rotations)
            case _:
                raise InternalError(f"{change} cannot be applied: the cache does not exist.")


class _Replica:
    """A cache; `hooks` apply to its next forward pass."""

    def __init__(self, sequence: CachedSequence) -> None:
        self.sequence = sequence
        self.block: VerifyBlock | None = None
        self.hooks: Callable[[], AbstractContextManager[Any]] = nullcontext
