"""Poisoned drafts, quantised caches and folding: whatever is drafted, the output is the plain loop's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step

from core.decoding.loop import DecodeLoop
from core.drafting.draft import Draft, Drafter, sanitise
from core.kv.cached_sequence import CachedSequence
from tests.core.architectures import ARCHITECTURES, VOCABULARY, tiny
from tests.core.decoding.test_loop import Oracle, prompt_with_repetition
from tests.core.drafters import answer_of
from tests.thinned import thinned

TOKENS = 80
TREES = [name for name, spec in ARCHITECTURES.items() if spec.trees]


class Poison(Drafter):
    """Random trees, some malformed, a few grown around the true answer so that paths are taken."""

    def __init__(self, answer: Sequence[int], rng: random.Random) -> None:
        self._answer, self._rng, self._done = list(answer), rng, 0

    def observe(self, tokens: Sequence[int]) -> None:
        self._done += len(tokens)

    def draft(self, budget: int) -> Draft:
        rng = self._rng
        ahead = self._answer[self._done : self._done + rng.randint(0, 4)]
        tokens, parents = [], []
        for index in range(rng.randint(0, 12)):
            true = index < len(ahead) and rng.random() < 0.8
            tokens.append(ahead[index] if true else rng.randrange(-2, VOCABULARY + 3))
            parents.append(index - 1 if true else rng.randrange(-1, index + (rng.random() < 0.1)))
        return Draft(tuple(tokens), tuple(parents))


def decode(
    model: Any, prompt: Sequence[int], drafter: Drafter | Any, sequence: CachedSequence | None = None
) -> tuple[list[int], int]:
    answer = answer_of(model, prompt, drafter, vocabulary=VOCABULARY, sequence=sequence)
    steps = list(DecodeLoop(answer).steps(TOKENS))
    return [token for step in steps for token in step.tokens], sum(step.accepted for step in steps)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "architecture", thinned(TREES, keep=["llama", "gemma3_text", "gpt_oss", "mistral3", "deepseek_v3"])
)
@pytest.mark.parametrize("seed", thinned(range(2), keep=[0]))
def test_poisoned_trees_never_change_the_output(architecture: str, seed: int) -> None:
    model: Any = tiny(architecture)
    rng = random.Random(seed)
    prompt = prompt_with_repetition(rng)
    expected = [int(t) for t, _ in generate_step(mx.array(prompt), model, max_tokens=TOKENS)]
    got, accepted = decode(model, prompt, Poison(expected, rng))
    assert got == expected
    assert accepted > 5, "some true paths must have been taken"


# Every kind on Llama, and on the other caches what can leave something behind there.
CLOSED = [
    *(("llama", kind) for kind in ("right", "wrong", "mixed", "plain")),
    *(("gemma3_text", "mixed"), ("qwen3_5", "wrong"), ("qwen3_5", "mixed"), ("deepseek_v3", "right")),
]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        pytest.param(name, kind, marks=() if (name, kind) in CLOSED else pytest.mark.sweep)
        for kind in ("right", "wrong", "mixed", "plain")
        for name in sorted(ARCHITECTURES)
    ],
)
def test_an_iteration_closed_after_any_step_leaves_a_cache_to_continue_from(
    architecture: str, kind: str
) -> None:
    """Also while a block is running, whose rows are removed."""
    model: Any = tiny(architecture)
    prompt = prompt_with_repetition(random.Random(0))
    expected = [int(t) for t, _ in generate_step(mx.array(prompt), model, max_tokens=60)]
    for count in (1, 2, 4, 7):
        rng = random.Random(count)
        spoil = {"right": 0.0, "wrong": 1.0, "mixed": 0.4}.get(kind)
        drafter = Drafter() if spoil is None else Oracle(expected, spoil, rng)
        answer = answer_of(model, prompt, drafter, vocabulary=VOCABULARY)
        steps = DecodeLoop(answer).steps(60)
        shown = [token for step in islice(steps, count) for token in step.tokens]
        steps.close()
        sequence, text = answer.sequence, [*prompt, *expected]
        assert shown == expected[: len(shown)]
        assert sequence.tokens == text[: len(sequence.tokens)]
        # The sequence may lack pending tokens, or have the last one that was shown.
        ids = text[: max(len(prompt) + len(shown), len(sequence.tokens) + 1)]
        if missing := ids[len(sequence.tokens) : -1]:
            model(mx.array([missing]), cache=sequence.cache)
            sequence.append(missing)
        more = answer_of(model, ids, Drafter(), vocabulary=VOCABULARY, sequence=sequence)
        left = min(12, len(text) - len(ids))
        got = [token for step in DecodeLoop(more).steps(left) for token in step.tokens]
        assert got == text[len(ids) :][:left]


def test_poison_is_really_malformed_now_and_then() -> None:
    poison = Poison([1, 2, 3], random.Random(0))
    drafts = [poison.draft(64) for _ in range(300)]
    cut = [sanitise(draft, vocabulary=VOCABULARY, budget=64) for draft in drafts]
    assert sum(a != b for a, b in zip(drafts, cut)) > 30
    assert sum(len(b) > 0 and not b.is_chain for b in cut) > 100


@pytest.mark.parametrize("architecture", ["qwen3_5", "nemotron_h", "granitemoehybrid"])
def test_partial_acceptance_on_recurrent_models_costs_no_forward_of_its_own(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = tiny(architecture)
    rng = random.Random(0)
    prompt = prompt_with_repetition(rng)
    expected = [int(t) for t, _ in generate_step(mx.array(prompt), model, max_tokens=TOKENS)]
    drafter: Any = Oracle(expected, 0.3, rng)
    answer = answer_of(model, prompt, drafter, vocabulary=VOCABULARY)
    forwards = 0
    kind = type(model)
    stock = kind.__call__

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal forwards
        forwards += 1
        return stock(self, *arguments, **named)

    monkeypatch.setattr(kind, "__call__", counted)
    steps = list(DecodeLoop(answer).steps(TOKENS))
    partly = sum(0 < step.accepted < step.drafted for step in steps)
    assert [token for step in steps for token in step.tokens] == expected
    assert partly > 5
    # A forward that was running ahead when the answer ended belongs to no step.
    assert len(steps) <= forwards <= len(steps) + 1
