"""tree_probe: whether trees are exact for a model, found out by trying.

`tree_pass` is exact if nothing but masks and rotary modules makes a token's index in the block
matter. Ministral 3 and Llama 4 scale queries by it, learned positions are looked up by it,
dynamic RoPE cannot take one position a row. No list of such models stays complete, so two
trials on the model itself decide, on fresh caches of the kinds at hand:

    near   a tree after a short context, which wraps small windows, against each of its branches
           run alone through the stock forward;
    far    for each power of two that models change their scales at: twin branches, the same
           tokens twice, the second one's indices beyond that length and all positions before it.
           Its caches are empty windows that stand at that length, so it costs one small forward.

Both sides of a comparison run the same kernels on the same shapes; only the columns that sums
run over differ. Beyond the probe's sight: dependence on the index that sets in at a length which
is no power of two, and attention that selects keys by their place in the cache once the context
is long. Worker's main thread.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from copy import deepcopy
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import CacheList, KVCache, QuantizedKVCache, make_prompt_cache

from core.decoding.probes.agreement import agree
from core.decoding.tree_pass import tree_pass, why_no_tree_masks
from core.errors import InternalError
from core.kv.fill import stand_at
from core.models.rope import rotations
from core.models.runtime.memory import is_exhausted

_LEAD = 2
# Siblings at two depths: no node but the first has the position that its index would give it.
_NEAR_PARENTS = (-1, -1, 0, 0, 1, 3)
_NEAR_PATHS = ((0, 2), (0, 3, 5), (1, 4))
_TWIN_PARENTS = (-1, 0, 1, -1, 3, 4)
_FIRST_TWIN, _SECOND_TWIN = (0, 1, 2), (3, 4, 5)
# So that the last nodes' indices are from 64 on and their positions before it.
_CONTEXT_TOKENS = 64 - _LEAD - 3
# Known: Llama 4 at 8,192, Ministral 3 at 16,384.
_FAR_TOKENS = tuple(1 << power for power in range(7, 18))
# Ids that every tokenizer has.
_IDS = 200
# A router at a near-tie may flip on the way; a model that goes by the index is wrong every time.
_TRIALS = 3


def why_no_trees(model: nn.Module, cache: Sequence[Any]) -> str:
    """Why trees are not exact for `model` with caches like `cache`, in words; empty if they are.

    `cache` is only looked at. A yes costs one forward of 59 tokens and 15 of 8, a second or so
    for SmolLM2-135M on two CPU cores; worth remembering for a model.
    """
    trials = try_trees(model, cache)
    while True:
        try:
            next(trials)
        except StopIteration as done:
            return str(done.value)


def try_trees(model: nn.Module, cache: Sequence[Any]) -> Generator[None, None, str]:
    """The same in pieces, a few forwards a `next()`."""
    if reason := why_no_tree_masks(cache):
        return reason
    try:
        empty = make_prompt_cache(model)
        empty[:] = [_alike(new, held) for new, held in zip(empty, cache, strict=True)]
        probe = _Probe(model, empty)
        if not any(probe.near_agrees(seed) for seed in range(_TRIALS)):
            return "its answers to a tree differ from its answers to the tree's branches"
        for tokens in _FAR_TOKENS:
            yield
            if not any(probe.far_agrees(seed, tokens) for seed in range(_TRIALS)):
                return f"near {tokens:,} tokens it goes by a token's index in the block, not its position"
    except Exception as error:  # Whatever a model's code raises: it has no trees, and we say why.
        if is_exhausted(error):
            raise  # says something about the machine now, nothing about the model
        return f"a trial tree failed ({type(error).__name__}: {error})"
    return ""


class _Probe:
    """Trials of one model. `empty` are fresh cache entries; they stay empty."""

    def __init__(self, model: Any, empty: list[Any]) -> None:
        self._model = model
        self._empty = empty
        self._found = rotations(model)

    def near_agrees(self, seed: int) -> bool:
        rng = random.Random(seed)
        context, block = _ids(rng, _CONTEXT_TOKENS), _ids(rng, _LEAD + len(_NEAR_PARENTS))
        cache = deepcopy(self._empty)
        self._logits(context, cache)
        tree = self._tree(block, _NEAR_PARENTS, deepcopy(cache))
        for path in _NEAR_PATHS:
            branch = [*block[:_LEAD], *(block[_LEAD + node] for node in path)]
            # Filled up to the tree's width, for the same kernels; what follows a token cannot touch it.
            branch += block[len(branch) :]
            alone = self._logits(branch, deepcopy(cache))
            if not agree(_rows(tree, path), _rows(alone, range(len(path)))):
                return False
        return True

    def far_agrees(self, seed: int, tokens: int) -> bool:
        rng = random.Random(seed)
        lead, twin = _ids(rng, _LEAD), _ids(rng, len(_FIRST_TWIN))
        start = tokens - _LEAD - len(_FIRST_TWIN)
        cache = deepcopy(self._empty)
        stand_at(cache, start)
        logits = self._tree(lead + twin + twin, _TWIN_PARENTS, cache)
        return agree(_rows(logits, _FIRST_TWIN), _rows(logits, _SECOND_TWIN))

    def _tree(self, block: list[int], parents: Sequence[int], cache: list[Any]) -> mx.array:
        with tree_pass(self._model, cache, parents, _LEAD, self._found) as rows:
            logits = self._logits(block, cache)
        if self._found and not rows.rotated:
            raise InternalError("The model has rotary modules and called none of them.")
        return logits

    def _logits(self, ids: list[int], cache: list[Any]) -> mx.array:
        logits: mx.array = self._model(mx.array(ids)[None], cache=cache)[0]
        mx.eval(logits, [entry.state for entry in cache])
        return logits


def _ids(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(_IDS) for _ in range(count)]


def _rows(logits: mx.array, nodes: Sequence[int]) -> mx.array:
    return mx.take(logits, mx.array([_LEAD + node for node in nodes]), axis=0)


def _alike(new: Any, held: Any) -> Any:
    """`new`, an empty entry, quantised if `held` is."""
    if isinstance(new, CacheList):
        return CacheList(*map(_alike, new.caches, held.caches))
    if isinstance(new, KVCache) and isinstance(held, QuantizedKVCache):
        return new.to_quantized(group_size=held.group_size, bits=held.bits)
    return new
