"""A follower's caches hold what the leader's hold, whatever an answer does to them: here, of a whole model.

No machine is needed for that. The leader's words go through the wire's codec to replicas of the same model;
afterwards the arrays must be the same bits, for every kind of cache, after cancels, second turns, forks,
trees and gaps.
"""

from __future__ import annotations

import random
import socket
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten
from mlx_lm.utils import load_tokenizer

from core.cluster import group
from core.cluster.group import Action, Begin, Changed, Do, Drop, Forward, decode, encode
from core.cluster.shard import RAISED, Replicas, Shard, cache_positions
from core.engine.engine import Engine
from core.events import ModelInfo
from core.folders.folder import fingerprint
from core.kv.mirrored import Change, MirroredCache
from core.kv.mlx_lm_caches import kind_of, leaves
from core.models.loader import LoadedModel
from core.settings import assign_all
from tests.core.architectures import ARCHITECTURES, VOCABULARY, build
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.support import run, settings
from tests.thinned import thinned

CONTEXT_TOKENS = 4096


class _Told(nn.Module):  # type: ignore[misc]
    """A whole model that tells replicas of itself what to do, and sees that they stand where it does."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.part = model
        self._shard = Shard(model)
        self._replicas = Replicas(self._shard)
        self._actions: list[Action] = []
        self._held: weakref.WeakValueDictionary[int, MirroredCache] = weakref.WeakValueDictionary()
        self._begun = self.forwards = 0

    @property
    def layers(self) -> list[Any]:
        found: list[Any] = self.part.layers
        return found

    def make_cache(self) -> list[Any]:
        return MirroredCache(self._shard.new_cache(), self)

    def begin(self, cache: MirroredCache) -> int:
        self._begun += 1
        weakref.finalize(cache, self._actions.append, Drop(self._begun)).atexit = False
        self._held[self._begun] = cache
        self._actions.append(Begin(self._begun))
        return self._begun

    def mirror(self, number: int, change: Change) -> None:
        self._actions.append(Changed(number, change))

    def __call__(self, ids: mx.array, cache: MirroredCache) -> mx.array:
        tokens: Any = ids[0].tolist()
        self._actions.append(Forward(cache.number, tuple(tokens)))
        positions = RAISED
        try:
            logits, asked = self._shard.forward(ids, cache)
            mx.eval(asked)
            positions = cache_positions(cache)
        finally:
            self.forwards += 1
            assert self._do() == positions
        return logits

    def _do(self) -> tuple[int, int]:
        message = decode(encode(Do(1, tuple(self._actions))))
        self._actions.clear()
        assert isinstance(message, Do)
        return self._replicas.do(message.actions)

    def agree(self) -> int:
        """Compare every cache that is still held; how many there are."""
        self._do()
        caches = dict(self._held)
        for number, cache in caches.items():
            twin = self._replicas._held[number].sequence
            for one, other in zip(leaves(cache), leaves(twin.cache), strict=True):
                assert kind_of(one) == kind_of(other)
                if not one.empty():
                    assert int(getattr(one, "offset", 0)) == int(getattr(other, "offset", 0))
                    ours, theirs = tree_flatten(one.state), tree_flatten(other.state)
                    for (_, mine), (_, its) in zip(ours, theirs, strict=True):
                        assert (mine is None) == (its is None)
                        assert mine is None or mx.array_equal(mine, its, equal_nan=True)
        assert len(self._replicas._held) == len(caches)
        return len(caches)


def told_engine(architecture: str, toy_folder: Path) -> tuple[Engine, _Told]:
    spec = ARCHITECTURES[architecture]
    config = {**spec.config, "max_position_embeddings": CONTEXT_TOKENS}
    if "text_config" in config:
        config = dict(spec.config)
    model = _Told(build(config, spec.weight_scale))
    tokenizer = load_tokenizer(toy_folder)
    info = ModelInfo(
        *(architecture, "", fingerprint(tokenizer.get_vocab()), "toy", architecture, "float32", ""),
        *(0, 0, CONTEXT_TOKENS, VOCABULARY, len(model.layers), True),
    )
    loaded = LoadedModel(model, tokenizer, info)
    loaded.eos = frozenset()
    engine = Engine()
    engine.use(loaded)
    return engine, model


KINDS = ["llama", "gemma3_text", "qwen3_5", "deepseek_v3", "ministral3"]


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(KINDS, keep=["qwen3_5"]))
def test_replicas_hold_what_the_leader_holds(architecture: str, toy_folder: Path) -> None:
    engine, model = told_engine(architecture, toy_folder)
    # A trial in which replicas stood elsewhere would have failed.
    verdict = engine.try_out()
    assert (verdict.why_no_trees == "") == ARCHITECTURES[architecture].trees, verdict
    assert "failed" not in verdict.why_no_trees + verdict.splits.reason
    rng = random.Random(architecture)
    prompt = prompt_with_repetition(rng)
    for drafter in ("cacheback", "auto", "off"):
        chosen = settings(drafter, toy_folder, **{"sampling.max_tokens": 60})
        answer, finished = run(engine, prompt, chosen)
        assert finished.stats.drafted > 0 or drafter == "off"
        model.agree()
        # Cut off, then gone on with; a chat that begins alike, and the first one again.
        run(engine, prompt, chosen, steps=rng.randint(3, 12))
        run(engine, [*prompt, *answer[:20], *prompt_with_repetition(rng, 15)], chosen)
        run(engine, [*prompt[:40], *prompt_with_repetition(rng, 30)], chosen)
        run(engine, [*prompt, *answer[:20]], chosen)
        assert model.agree() > 0
    engine.forget()
    engine.unload()
    assert model.forwards > 100


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(["llama", "gemma3_text", "qwen3_5"], keep=["gemma3_text"]))
def test_gaps_are_the_same_there(architecture: str, toy_folder: Path) -> None:
    engine, model = told_engine(architecture, toy_folder)
    rng = random.Random(7)
    long = prompt_with_repetition(rng, 1200)
    values = [
        *(("prefill.mode", "on"), ("prefill.scorer", "lexical")),
        *(("prefill.keep_pct", 10), ("prefill.chunk_tokens", 128)),
    ]
    chosen = assign_all(settings("cacheback", toy_folder), values)
    answer, finished = run(engine, long, chosen)
    assert finished.stats.skipped_tokens > 0
    model.agree()
    _, finished = run(engine, [*long, *answer, *prompt_with_repetition(rng, 30)], chosen)
    assert finished.stats.reused_tokens > 0
    model.agree()


def test_a_follower_of_which_something_impossible_is_asked_says_so(toy_folder: Path) -> None:
    _, model = told_engine("llama", toy_folder)
    with pytest.raises(Exception, match="does not exist"):
        model._replicas.do((Forward(99, (1, 2)),))


def test_positions_are_compared_while_ranks_complete_operations() -> None:
    def follow(other: group.Link) -> None:
        with closing(other):
            while isinstance(message := other.receive(), Do):
                other.send(group.Done(message.number, message.number, -1))

    links, before = [], sys.getswitchinterval()
    with ThreadPoolExecutor() as pool:
        for rank in range(5):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                links.append(group.Link(socket.create_connection(listener.getsockname()), f"Rank {rank}"))
                pool.submit(follow, group.Link(listener.accept()[0], "Rank 0"))
        leader = group.Leader(links, lambda _: None)
        cache = MirroredCache([], leader)
        try:
            sys.setswitchinterval(1e-6)
            for number in range(1, 8001):
                leader.record_positions(leader.forward(cache, [1]), (number, -1))
        finally:
            sys.setswitchinterval(before)
            leader.close()
    for link in links:
        link.close()
