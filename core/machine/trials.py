"""Trials of a loaded model: whether trees and splits are exact, and the saved verdicts.

Trees, and drafts of several tokens, are exact for most models and not for all. No list of exceptions stays
complete, so trials on the model itself decide. They take some seconds, so they run while idle or by `models
profile`, never before a first token, and the verdict is saved per (config, dtype, versions of MLX and mlx-lm,
processor). Until there is one:

    trees    are not verified; chains are. One verdict ships: the starter's
             (`resources/decoding/verdicts.json`, written by `make starter-verdict`).
    chains   are verified for the architectures on which all drafters were tested without a difference
             (`resources/decoding/tried.json`: the names in `tests.core.architectures`, and those that
             `docs/models.md` shows), unless the config requests rotary scaling by length. Others neither
             speculate nor reuse a prefix until they were tested: a wrong answer costs more than some slow
             seconds.

*Trees* (`try_trees`) are exact if a token's index in the block matters to masks and rotary modules only.
Ministral 3 and Llama 4 scale queries by it, learned positions are looked up by it, and dynamic RoPE cannot
use one position per row. Two kinds of trials, on fresh caches:

    near   a tree after a short context, which wraps small windows, against each of its branches alone in an
           unmodified forward pass
    far    for each power of two at which models change their scales: twin branches of the same tokens, the
           second one's indices beyond that length and all positions before it; their caches are empty windows
           at that length, so a trial costs one small forward pass

Both sides of a comparison run the same kernels on the same shapes; only the columns that sums run over
differ. Not detected: dependence on the index from a length that is not a power of two, and attention that
selects keys by their position in the cache in long contexts.

*Splits* (`try_splits`): drafting reads several tokens in one forward pass where plain decoding reads one at a
time, and reusing a cache splits a text at another position than a cold start. Both are exact only if the
split does not matter. It does if a mask for several tokens is wider than the window of single tokens
(plamo3), if a block's rows are taken for the newest ones (phi3small's sparse blocks), and if keys depend on
the length at which they were computed (dynamic rotary scaling). Around each power of two, one block is
compared with the same tokens one at a time, each followed by one more token, which shows what the block left
in the cache. To reach a length without reading that much, caches are filled: a short real context is
repeated up to the length, in windows up to their size, with greater weights in the oldest columns, so that
one column too many is detected. Beyond `_FILLED_TOKENS`, caches of whole texts have a gap before the length.
Not detected: effects beyond `_FILLED_TOKENS` that depend on columns instead of positions, and windows and
caches too large to be filled.

Worker's main thread.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import msgspec
from mlx.utils import tree_map
from mlx_lm.models.cache import CacheList, KVCache, QuantizedKVCache, make_prompt_cache
from msgspec import Struct

from core.decoding.tree import tree_pass, why_no_tree_masks
from core.errors import InternalError, reason_of
from core.events import ModelInfo
from core.folders.config import model_class
from core.folders.json_files import object_in
from core.kv.mirrored import Fill, StandAt, mirror
from core.kv.mlx_lm_caches import (
    Cache,
    CacheEntry,
    LanguageModel,
    WindowState,
    empty_window,
    kind_of,
    leaves,
    set_window_state,
)
from core.kv.positions import Columns, Positioned
from core.machine.compare import agree, random_ids, rounding_of
from core.models.memory import fault
from core.models.parts import rotations
from core.system.files import JsonStore
from core.system.paths import resources_dir
from core.system.prepared import prepared

NOT_TRIED = "it was not tested on this model yet; tests run while idle, or with `models profile`"


class Verdict(Struct, frozen=True):
    """Trial results of one model. `why_no_trees` is empty if trees are exact."""

    key: str
    why_no_trees: str
    splits: Splits

    def why_not_split(self, tokens: int) -> str:
        """Why no draft is verified in a context that grows to `tokens`; empty if drafts are."""
        agreed = self.splits.agreed_tokens
        return self.splits.reason if agreed is not None and tokens > agreed else ""


def verdict_key(info: ModelInfo) -> str:
    """Identifies a model by its config and its dtype, versions and device. Two copies of one model have
    one key.
    """
    versions = (version("mlx"), version("mlx-lm"), mx.default_device().type.name)
    return " ".join(
        map(str, (info.architecture, _config_hash(info), info.dtype, info.quantisation, *versions))
    )


VERDICTS = JsonStore("verdict", Verdict)


def load_verdict(info: ModelInfo) -> Verdict | None:
    """The saved or shipped verdict; None if there is none."""
    key = verdict_key(info)
    return VERDICTS.load(key) or _shipped().get(key)


def is_tried(info: ModelInfo) -> bool:
    """Whether drafting was tested without a difference on the model's architecture and kind of rotary
    scaling.

    A model type can be another name of an architecture: Kimi K2 runs as `deepseek_v3`.
    """
    config = _config(info)
    return _module_of(info.architecture, config) in _tried() and not _scales_by_length(config)


def _module_of(model_type: str, config: Any) -> str:
    """The name of the mlx-lm module that implements a model type; empty if none does."""
    architectures = config.get("architectures") if isinstance(config, dict) else None
    found = model_class({"model_type": model_type, "architectures": architectures})
    return "" if found is None else str(found.__module__.rpartition(".")[2])


def _scales_by_length(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if "dynamic" in (value.get("type"), value.get("rope_type")):
        return True
    return any(map(_scales_by_length, value.values()))


def _config(info: ModelInfo) -> Any:
    return object_in(Path(info.path) / "config.json") if info.path else {}


def _config_hash(info: ModelInfo) -> str:
    """Hash of the config's content, or of the known figures without a config."""
    content = _config(info) or [info.path, info.name, info.layers, info.parameters, info.vocabulary]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


@cache
def _tried() -> frozenset[str]:
    return frozenset(
        msgspec.json.decode((resources_dir() / "decoding" / "tried.json").read_bytes(), type=list[str])
    )


@cache
def _shipped() -> dict[str, Verdict]:
    path = resources_dir() / "decoding" / "verdicts.json"
    return {each.key: each for each in msgspec.json.decode(path.read_bytes(), type=prepared(list[Verdict]))}


_LEAD = 2
# Siblings at two depths: only the first node has the position that its index would give it.
_NEAR_PARENTS = (-1, -1, 0, 0, 1, 3)
_NEAR_PATHS = ((0, 2), (0, 3, 5), (1, 4))
_TWIN_PARENTS = (-1, 0, 1, -1, 3, 4)
_FIRST_TWIN, _SECOND_TWIN = (0, 1, 2), (3, 4, 5)
# Puts the last nodes' indices at 64 and above, and their positions below.
_TREE_CONTEXT_TOKENS = 64 - _LEAD - 3
# Known cases: Llama 4 at 8,192, Ministral 3 at 16,384.
_FAR_TOKENS = tuple(1 << power for power in range(7, 18))
# A router at a near-tie may flip once; a model that depends on the index or the split fails every time.
_TRIALS = 3


Agree = Callable[[mx.array, mx.array], bool]


def _agreement(model: LanguageModel, new_cache: Callable[[], Cache]) -> Agree:
    """Compares logits of one model up to its rounding, which is measured only if they differ by more than is
    usual for their dtype.
    """
    rounding = cache(lambda: rounding_of(model, new_cache))
    return lambda rows, others: agree(rows, others) or agree(rows, others, rounding())


def try_trees(model: nn.Module, cache: Sequence[CacheEntry]) -> Generator[None, None, str]:
    """Runs a few forward passes per `next()`; returns why trees are not exact, empty if they are."""
    if reason := why_no_tree_masks(cache):
        return reason
    try:
        empty = make_prompt_cache(model)
        empty[:] = [_same_kind(new, stored) for new, stored in zip(empty, cache, strict=True)]
        probe = _Probe(model, empty)
        if not any(probe.near_agrees(seed) for seed in range(_TRIALS)):
            return "its answers to a tree differ from its answers to the tree's branches"
        for tokens in _FAR_TOKENS:
            yield
            if not any(probe.far_agrees(seed, tokens) for seed in range(_TRIALS)):
                return f"near {tokens:,} tokens it depends on a token's index in the block, not its position"
    except Exception as error:  # any exception of a model's code is reported as the reason
        if fault(error):
            raise  # depends on the machine, not on the model
        return f"a trial tree failed ({reason_of(error)})"
    return ""


class _Probe:
    """Trials of one model. `empty` are fresh cache entries; they stay empty."""

    def __init__(self, model: LanguageModel, empty: Cache) -> None:
        self._model = model
        self._empty = empty
        self._found = rotations(model)
        self._agree = _agreement(model, lambda: deepcopy(empty))

    def near_agrees(self, seed: int) -> bool:
        rng = random.Random(seed)
        context, block = random_ids(rng, _TREE_CONTEXT_TOKENS), random_ids(rng, _LEAD + len(_NEAR_PARENTS))
        cache = deepcopy(self._empty)
        _logits(self._model, context, cache)
        tree = self._tree(block, _NEAR_PARENTS, deepcopy(cache))
        for path in _NEAR_PATHS:
            branch = [*block[:_LEAD], *(block[_LEAD + node] for node in path)]
            # Padded to the tree's width, for the same kernels; later tokens cannot affect earlier ones.
            branch += block[len(branch) :]
            alone = _logits(self._model, branch, deepcopy(cache))
            if not self._agree(_rows(tree, path), _rows(alone, range(len(path)))):
                return False
        return True

    def far_agrees(self, seed: int, tokens: int) -> bool:
        rng = random.Random(seed)
        lead, twin = random_ids(rng, _LEAD), random_ids(rng, len(_FIRST_TWIN))
        start = tokens - _LEAD - len(_FIRST_TWIN)
        cache = deepcopy(self._empty)
        stand_at(cache, start)
        logits = self._tree(lead + twin + twin, _TWIN_PARENTS, cache)
        return self._agree(_rows(logits, _FIRST_TWIN), _rows(logits, _SECOND_TWIN))

    def _tree(self, block: list[int], parents: Sequence[int], cache: Cache) -> mx.array:
        with tree_pass(self._model, cache, parents, _LEAD, self._found) as rows:
            logits = _logits(self._model, block, cache)
        if self._found and not rows.rotated:
            raise InternalError("The model has rotary modules and called none of them.")
        return logits


def _rows(logits: mx.array, nodes: Sequence[int]) -> mx.array:
    return mx.take(logits, mx.array([_LEAD + node for node in nodes]), axis=0)


def _same_kind(new: Any, stored: Any) -> Any:
    """`new`, an empty entry, quantised if `stored` is."""
    if isinstance(new, CacheList):
        return CacheList(*map(_same_kind, new.caches, stored.caches))
    if isinstance(new, KVCache) and isinstance(stored, QuantizedKVCache):
        return new.to_quantized(group_size=stored.group_size, bits=stored.bits)
    return new


_SPLIT_CONTEXT_TOKENS = 56
_BLOCK_TOKENS = 6
# Tokens of the block before the length.
_BEFORE_TOKENS = 3
LENGTHS = tuple(1 << power for power in range(6, 18))
_FILLED_TOKENS = 4096
# Memory limit of a trial; longer contexts are not tested.
_MOST_BYTES = 1 << 30


class Splits(Struct, frozen=True):
    """The split did not matter up to `agreed_tokens` of context; None: at no tested length.

    `reason` says what did matter; empty if nothing.
    """

    agreed_tokens: int | None = None
    reason: str = ""


def try_splits(
    model: LanguageModel, new_cache: Callable[[], Cache], context_tokens: int
) -> Generator[None, None, Splits]:
    """Runs some forward passes per `next()`. Lengths from `context_tokens` on are not tested."""
    agreed = 0
    agrees = _agreement(model, new_cache)
    for length in LENGTHS:
        if agreed and agreed >= context_tokens:
            break
        filled = length <= _FILLED_TOKENS
        try:
            found = False
            for seed in range(_TRIALS):
                caches = _cache_at(model, new_cache, length - _BEFORE_TOKENS, random.Random(seed))
                if caches is None:
                    return Splits()
                found = _agrees(model, caches, random.Random(seed), agrees)
                yield
                if found:
                    break
        except Exception as error:  # any exception of a model's code
            if fault(error):
                raise  # depends on the machine, not on the model
            if filled:
                return Splits(agreed, f"a trial block failed ({reason_of(error)})")
            return Splits()  # it does not support gaps, which plain reading never has
        if not found:
            reason = f"near {length:,} tokens its answers depend on how many tokens are read at once"
            return Splits(agreed, reason)
        agreed = length
    return Splits()


def _cache_at(
    model: LanguageModel, new_cache: Callable[[], Cache], start: int, rng: random.Random
) -> Cache | None:
    """A cache whose next token has position `start`; None if that is not possible."""
    cache = new_cache()
    known = all(kind_of(entry) != "unknown" for entry in leaves(cache))
    _logits(model, random_ids(rng, min(_SPLIT_CONTEXT_TOKENS, start)), cache)
    if start <= _SPLIT_CONTEXT_TOKENS:
        return cache
    if not known:
        # Caches of unknown kinds cannot be filled: one short context is read.
        if start > 2 * _SPLIT_CONTEXT_TOKENS:
            return None
        _logits(model, random_ids(rng, start - _SPLIT_CONTEXT_TOKENS), cache)
        return cache
    if sum(_bytes_at(entry, start) for entry in leaves(cache)) > _MOST_BYTES:
        return None
    fill(cache, start, _SPLIT_CONTEXT_TOKENS, _FILLED_TOKENS)
    return cache


def _bytes_at(entry: Any, start: int) -> int:
    if kind_of(entry) == "recurrent":
        return 0
    columns = min(start, int(entry.max_size)) if kind_of(entry) == "window" else min(start, _FILLED_TOKENS)
    return int(entry.nbytes) * columns // _SPLIT_CONTEXT_TOKENS


def _agrees(model: LanguageModel, cache: Cache, rng: random.Random, agrees: Agree) -> bool:
    block, after = random_ids(rng, _BLOCK_TOKENS), random_ids(rng, 1)
    other = deepcopy(cache)
    together = mx.concatenate([_logits(model, block, cache), _logits(model, after, cache)])
    apart = mx.concatenate([_logits(model, [token], other) for token in block + after])
    return agrees(together, apart)


def _logits(model: LanguageModel, ids: Sequence[int], cache: Cache) -> mx.array:
    logits: mx.array = model(mx.array(list(ids))[None], cache=cache)[0]
    mx.eval(logits, [entry.state for entry in leaves(cache)])
    return logits


# ---- caches at a position that was never read


_EDGE_COLUMNS = 8
_EDGE_WEIGHT = 16.0


def fill(cache: Cache, start: int, read_tokens: int, most_tokens: int) -> None:
    """Advances `cache` in place from `read_tokens` to `start` tokens without forward passes.

    The columns are repeated up to `start`, in windows up to their size with greater weights in the oldest
    columns. Beyond `most_tokens`, caches of whole texts have a gap before `start` instead.
    """
    mirror(cache, Fill(start, read_tokens, most_tokens))
    columns = Columns()
    columns.extend(read_tokens)
    columns.jump(start)
    cache[:] = [_filled(entry, start, read_tokens, columns, most_tokens) for entry in cache]


def stand_at(cache: Cache, position: int) -> None:
    """Replaces each entry in place with an empty window whose next position is `position`."""
    mirror(cache, StandAt(position))
    cache[:] = [_at(entry, position) for entry in cache]


def _at(empty: Any, position: int) -> Any:
    if isinstance(empty, CacheList):
        return CacheList(*(_at(child, position) for child in empty.caches))
    return empty_window(getattr(empty, "max_size", 1 << 30), position)


def _filled(entry: Any, start: int, read_tokens: int, columns: Columns, most_tokens: int) -> Any:
    if hasattr(entry, "caches"):
        entry.caches = type(entry.caches)(
            _filled(child, start, read_tokens, columns, most_tokens) for child in entry.caches
        )
        return entry
    kind = kind_of(entry)
    if kind == "recurrent" or entry.keys is None:
        return entry
    if kind == "window":
        held = min(start, int(entry.max_size))
        keys = _repeated(entry.keys, read_tokens, held)
        values = _weighed(_repeated(entry.values, read_tokens, held))
        set_window_state(entry, WindowState(keys, values, start, held))
        return entry
    if start > most_tokens:
        return Positioned(entry, columns)
    entry.keys, entry.values = tree_map(
        lambda part: _repeated(part, read_tokens, start), (entry.keys, entry.values)
    )
    entry.offset = start
    return entry


def _repeated(part: mx.array, read_tokens: int, columns: int) -> mx.array:
    held = part[..., :read_tokens, :]
    times = -(-columns // held.shape[-2])
    return mx.contiguous(mx.concatenate([held] * times, axis=-2)[..., :columns, :])


def _weighed(values: mx.array) -> mx.array:
    edge = mx.arange(values.shape[-2])[:, None] < _EDGE_COLUMNS
    return mx.where(edge, values * _EDGE_WEIGHT, values).astype(values.dtype)
