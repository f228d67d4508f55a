"""The MLX part of a cluster: this rank's shard of the model, rank 0's model, and the other ranks' caches.

MLX evaluates lazily, in an order that depends on the requested arrays. If layers wait for other ranks, all
ranks must evaluate the same arrays, or they deadlock. A forward pass therefore evaluates the caches' state
and the output of the last layer on each rank; only rank 0 needs logits, and only where a token is chosen. A
head that is split among the ranks is evaluated everywhere. Main thread of each rank.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.nn.layers.distributed import AllToShardedLinear, QuantizedAllToShardedLinear
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.cluster.group import Action, Begin, Changed, Drop, Forward, Leader
from core.decoding.tree import tree_pass
from core.errors import ClusterError, InternalError, RequestError, reason_of
from core.events import ModelInfo
from core.folders.config import layer_kinds, model_class, text_config
from core.kv import mirrored
from core.kv.cached_sequence import CachedSequence
from core.kv.mirrored import MirroredCache
from core.kv.mlx_lm_caches import Cache, CacheEntry, is_appending, is_window, kind_of, leaves
from core.kv.verify_block import VerifyBlock
from core.machine.trials import fill, stand_at
from core.models.loader import LoadedModel
from core.models.parts import Rotation, rotations

# Cache position after a forward pass in which the model's code raised, on all machines.
RAISED = (-2, -2)


class Shard:
    """This machine's part of a model; `model` is mlx-lm's object after `split_model`."""

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
        """An empty cache, one entry per layer on this machine."""
        cache: Cache = make_prompt_cache(self.model)
        return cache

    @property
    def kinds(self) -> tuple[str, ...]:
        """Arrays of cache entries in a fixed order."""
        return tuple(sorted({kind_of(entry) for entry in leaves(self.new_cache())}))

    def forward(self, ids: mx.array, cache: Sequence[CacheEntry]) -> tuple[mx.array, list[Any]]:
        """Lazy logits [1, w, vocabulary] for `ids` [1, w], and the arrays that every machine must evaluate
        now.
        """
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
    """Replaces `body` during a forward pass to record its output."""

    def __init__(self, body: nn.Module, call: Any) -> None:
        self._body = body
        self._call = call

    def __call__(self, *args: Any, **options: Any) -> mx.array:
        given: mx.array = self._call(*args, **options)
        return given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)


def _body(model: nn.Module) -> tuple[Any, str]:
    """The module with the layers, as an item of its owner; the head follows it."""
    for _, owner in model.named_modules():
        for key, part in owner.items():
            if isinstance(part, nn.Module) and isinstance(part.get("layers"), list):
                return owner, key
    raise ClusterError(f"{type(model).__module__} has a structure that cannot be split.")


def cache_positions(cache: Sequence[CacheEntry]) -> tuple[int, int]:
    """Positions of the appending entries and of the windows; −1 for a missing kind."""
    appending = window = -1
    for entry in leaves(cache):
        if is_appending(entry):
            appending = max(appending, int(entry.offset))
        elif is_window(entry):
            window = max(window, int(entry.offset))
    return appending, window


# ---- splitting a model over machines: supported types, and sizes that divide
#
#     tensor    each layer's heads and inner rows over all machines (mlx-lm's `shard`)
#     pipeline  some layers on each (mlx-lm's `pipeline`); for types whose tensors cannot be split
#
# mlx-lm accepts numbers of heads that the machines do not divide and fails at the first token, so they are
# checked here.


# Config keys of numbers that must be divisible by the number of machines, and their names in messages.
_DIVIDES = (
    ("num_attention_heads", "attention heads"),
    ("num_key_value_heads", "key/value heads"),
    ("hidden_size", "hidden dimensions"),
    ("intermediate_size", "inner dimensions"),
    ("linear_num_key_heads", "linear key heads"),
    ("linear_num_value_heads", "linear value heads"),
)
_MOST_MACHINES = 16


def abilities(config: dict[str, Any]) -> tuple[str, ...]:
    """Which of `tensor` and `pipeline` mlx-lm supports for this model type."""
    found = model_class(config)
    if found is None:
        return ()
    module = importlib.import_module(found.__module__)
    parts = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, nn.Module)]
    pipeline = any(hasattr(each, "pipeline") for each in parts)
    return ("tensor",) * hasattr(found, "shard") + ("pipeline",) * pipeline


def why_not(split: str, config: dict[str, Any], size: int) -> str:
    """Why a model with this config cannot be split by `split` over `size` machines; empty if it can."""
    name = str(config.get("model_type", "?"))
    has = abilities(config)
    if split not in has:
        other = f"; it can be split by {has[0]}" if has else ""
        return f"models of the type “{name}” cannot be split by {split}{other}"
    text = text_config(config)
    if split == "pipeline":
        kinds = layer_kinds(text)
        if len(kinds) < size:
            return f"it has {len(kinds)} layers for {size} machines"
        # Rollback is decided on one machine, by the caches of its layers.
        if len({frozenset(stage) for stage in _stages(kinds, size)}) > 1:
            return (
                f"its {len(kinds)} layers are of several kinds, not all of which {size} machines would have"
            )
        return ""
    for key, words in _DIVIDES:
        count = text.get(key)
        if isinstance(count, int) and count % size:
            return f"it has {count:,} {words}, which do not divide by {size} machines{_instead(text)}"
    return ""


def _stages(kinds: Sequence[str], size: int) -> list[Sequence[str]]:
    """Layer kinds per machine as in mlx-lm's `pipeline`: the last layers on the first machine, more on the
    first ones.
    """
    base, extra = divmod(len(kinds), size)
    stages, end = [], len(kinds)
    for rank in range(size):
        start = end - base - (rank < extra)
        stages.append(kinds[start:end])
        end = start
    return stages


def _instead(text: dict[str, Any]) -> str:
    counts = [text[key] for key, _ in _DIVIDES if isinstance(text.get(key), int) and text[key]]
    sizes = [n for n in range(2, _MOST_MACHINES + 1) if all(count % n == 0 for count in counts)]
    return f" ({', '.join(map(str, sizes))} would do)" if sizes else ""


def choose(config: dict[str, Any], size: int) -> tuple[str, str]:
    """How to split the model, and why it is not possible (else empty): tensor before pipeline."""
    against = why_not("tensor", config, size)
    if against and not why_not("pipeline", config, size):
        return "pipeline", ""
    return "tensor", against


def split_model(model: nn.Module, group: mx.distributed.Group, split: str) -> None:
    """Reduces `model`, before its weights are read, to this machine's part. Raises `ClusterError`."""
    try:
        if split == "pipeline":
            model.model.pipeline(group)
        else:
            model.shard(group)
    except Exception as error:  # errors of the model's code
        raise ClusterError(
            f"The model cannot be split by {split} ({reason_of(error)}).",
            "Choose another split, another number of machines or another model.",
        ) from error


# ---- the leader's model: rank 0's part, called like an mlx-lm model
#
# Before a forward pass it is sent to the followers; then all machines run their parts, and the leader gets
# the logits. Ids must be evaluated before they are sent. Worker's main thread.


class ShardedModel(nn.Module):  # type: ignore[misc]
    """`shard` on this machine; the other parts are on the followers of `leader`."""

    def __init__(self, shard: Shard, leader: Leader) -> None:
        super().__init__()
        self.part = shard.model  # an attribute, so that its rotary modules and attention layers are found
        self._shard = shard
        self._leader = leader

    @property
    def layers(self) -> list[Any]:
        """The layers on this machine."""
        found: list[Any] = self.part.layers
        return found

    def make_cache(self) -> list[Any]:
        """An empty cache, mirrored on all machines."""
        return MirroredCache(self._shard.new_cache(), self._leader)

    def __call__(self, ids: mx.array, cache: Cache) -> mx.array:
        """Logits [1, w, vocabulary] for `ids` [1, w], which are evaluated first."""
        if not isinstance(cache, MirroredCache):
            raise ClusterError(
                "This needs access to all layers, and some are on other machines.",
                "Choose another way, or run the model on one machine.",
            )
        tokens: Any = ids[0].tolist()
        number = self._leader.forward(cache, tokens)
        try:
            logits, asked = self._shard.forward(ids, cache)
        except Exception:  # the model's code does not support this trial, on any machine
            self._leader.record_positions(number, RAISED)
            raise
        self._leader.record_positions(number, cache_positions(cache))
        try:
            mx.async_eval(asked)
        except Exception as error:
            self._leader.report_error(error)
            raise
        return logits


class ClusterModel(LoadedModel):
    """A model that `leader` loaded over all ranks, as its model of that `number`."""

    def __init__(
        self, model: ShardedModel, tokenizer: TokenizerWrapper, info: ModelInfo, leader: Leader, number: int
    ) -> None:
        super().__init__(model, tokenizer, info)
        self.leader = leader
        self._number = number

    def report_error(self, error: BaseException) -> None:
        """Ends the process if `error` may have left machines with different caches."""
        if not isinstance(error, RequestError):
            self.leader.report_error(error)

    def settle(self) -> None:
        """Waits until all machines have completed all operations."""
        self.leader.settle()

    def close(self) -> None:
        """The other ranks release their parts."""
        self.leader.unload(self._number)


# ---- a follower's copies of the leader's caches, changed by the leader's actions
#
# A replica is a `CachedSequence` with the leader's cache classes for this machine's layers, so the same
# methods have the same effect. Token ids are zeros, because a follower needs only their number. Follower's
# main thread.


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
            case mirrored.BlockBegun():
                replica.block = VerifyBlock(sequence.cache)
            case mirrored.Keep(width, rows):
                if replica.block is None:
                    raise InternalError("The leader accepted rows of a block that was not started.")
                replica.block.keep(width, rows)
                replica.block = None
            case mirrored.TreeBegun(parents, lead):
                replica.hooks = lambda: tree_pass(shard.model, sequence.cache, parents, lead, shard.rotations)
            case _:
                raise InternalError(f"{change} cannot be applied: the cache does not exist.")


class _Replica:
    """A cache; `hooks` apply to its next forward pass."""

    def __init__(self, sequence: CachedSequence) -> None:
        self.sequence = sequence
        self.block: VerifyBlock | None = None
        self.hooks: Callable[[], AbstractContextManager[Any]] = nullcontext
