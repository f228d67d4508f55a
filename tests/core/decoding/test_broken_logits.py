"""Logits that are not numbers end an answer with an error, after the tokens before them, on every path."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest

from core.decoding.answer import FAST, Exactness
from core.decoding.loop import DecodeLoop
from core.decoding.sampling import NO_CHOICE, RowInputs, Sampler
from core.drafting import draft_model
from core.drafting.draft import Draft, Drafter
from core.drafting.draft_model import DraftModelDrafter
from core.engine.engine import Engine
from core.engine.model_session import ModelProposer
from core.errors import BrokenLogitsError
from core.events import Token
from core.models.loader import LoadedModel
from core.settings import Settings, assign_all
from core.settings.drafting import DraftModel
from core.settings.request import Sampling
from tests.core.decoding.test_loop import SAMPLINGS, Oracle, Scripted, decode, plain, tokens_of
from tests.core.drafters import Toy, answer_of
from tests.core.toy import toy_model
from tests.thinned import thinned

PROMPT = [random.Random(8).randrange(4, 260) for _ in range(40)]
VOCABULARY = 260
# Tokens of the answer that come before the break.
SOUND = 23
WHOLE_ROW = [float("nan"), float("inf"), float("-inf")]


class Breaking(nn.Module):
    """The toy, whose logits `ids` are `value` in the row of column `at` and in all behind it."""

    def __init__(self, at: int, value: float, ids: slice = slice(None)) -> None:
        super().__init__()
        self.inner = toy_model()
        self.at, self.value, self.ids = at, value, ids

    @property
    def layers(self) -> Any:
        return self.inner.layers

    def __call__(self, ids: mx.array, cache: Any = None) -> mx.array:
        offset = cache[0].offset
        logits = self.inner(ids, cache=cache)
        broken = self.breaks(ids[0], offset + mx.arange(ids.shape[1]))[:, None]
        chosen = mx.zeros(VOCABULARY, dtype=mx.bool_)
        chosen[self.ids] = True
        return mx.where(broken & chosen, self.value, logits)

    def breaks(self, ids: mx.array, columns: mx.array) -> mx.array:
        """Which rows of a block are broken."""
        return columns >= self.at


class BreakingAtToken(Breaking):
    """Broken in the row that reads the token `at`, wherever in a tree that stands."""

    def breaks(self, ids: mx.array, columns: mx.array) -> mx.array:
        return ids == self.at


def broken_run(
    model: Any,
    drafter: Drafter,
    sampling: Sampling = Sampling(),  # noqa: B008
    *,
    drafts: bool = True,
    exactness: Exactness = FAST,
) -> list[int]:
    """The tokens that come before the error, which must come."""
    name = "ngram-simple" if drafts else "off"
    broken = answer_of(model, PROMPT, drafter, sampling, drafts=name)
    broken.exactness = exactness
    tokens: list[int] = []

    def run() -> None:
        for step in DecodeLoop(broken).steps(100):
            assert step.tokens
            tokens.extend(step.tokens)

    with pytest.raises(BrokenLogitsError, match="output is invalid"):
        run()
    return tokens


def breaking(value: float = float("nan"), ids: slice = slice(None)) -> Breaking:
    """Breaks at the row that would choose the answer's token number `SOUND`."""
    return Breaking(len(PROMPT) - 1 + SOUND, value, ids)


@cache
def answer(sampling: Sampling = Sampling()) -> list[int]:  # noqa: B008
    """What a sound model writes."""
    loop = DecodeLoop(answer_of(toy_model(), PROMPT, Drafter(), sampling, drafts="off"))
    return [token for step in loop.steps(60) for token in step.tokens]


@pytest.mark.sweep
@pytest.mark.parametrize("value", WHOLE_ROW)
@pytest.mark.parametrize("drafts", [False, True], ids=["ahead", "looked-up"])
def test_plain_steps_end(value: float, drafts: bool) -> None:
    assert broken_run(breaking(value), Drafter(), drafts=drafts) == answer()[:SOUND]


@pytest.mark.parametrize("ids", [slice(0, 1), slice(130, 131), slice(259, 260)], ids=str)
@pytest.mark.parametrize("value", WHOLE_ROW[:2])
def test_one_bad_logit_is_enough(value: float, ids: slice) -> None:
    assert broken_run(breaking(value, ids), Drafter(), drafts=False) == answer()[:SOUND]


@pytest.mark.sweep
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=list(SAMPLINGS))
@pytest.mark.parametrize("value", WHOLE_ROW)
def test_sampled_and_penalised_steps_end(sampling: Sampling, value: float) -> None:
    assert broken_run(breaking(value), Drafter(), sampling, drafts=False) == answer(sampling)[:SOUND]


@pytest.mark.parametrize("value", WHOLE_ROW)
@pytest.mark.parametrize("spoil", thinned([0.0, 0.3, 1.0], keep=[0.3]))
@pytest.mark.parametrize("exactness", [FAST, Exactness("exact", 4)], ids=lambda mode: mode.mode)
def test_drafted_blocks_end_behind_what_was_accepted(
    value: float, spoil: float, exactness: Exactness
) -> None:
    sound = answer()
    drafter = Oracle(sound, spoil, random.Random(3))
    assert broken_run(breaking(value), drafter, exactness=exactness) == sound[:SOUND]


def test_trees_end_behind_what_was_accepted() -> None:
    sound = answer()
    end = next(at for at in range(10, 60) if sound[at] not in [*PROMPT, *sound[:at]])
    for first_of_tree in range(4):
        trees = [Draft.chain(sound[:first_of_tree])] if first_of_tree else []
        for at in range(first_of_tree + bool(first_of_tree), 56, 4):
            first, second, third = sound[at : at + 3]
            beside = (first + 1) % VOCABULARY
            trees.append(Draft((first, beside, second, third), (-1, -1, 0, 2)))
        tokens = broken_run(BreakingAtToken(sound[end], float("nan")), Scripted(trees))
        assert tokens == sound[: end + 1]


def test_a_broken_row_behind_a_wrong_draft_changes_nothing() -> None:
    sound = plain(toy_model(), PROMPT, SOUND)
    wrong = [(token + 1) % VOCABULARY for token in sound]
    # Reaches far behind the break from its first step on, and is never right.
    drafts: Callable[[int], Draft] = lambda at: Draft.chain([*wrong[at:], *[5] * 30])  # noqa: E731
    tokens = broken_run(breaking(), Scripted([drafts(at) for at in range(SOUND)]))
    assert tokens == sound


def test_a_prompt_that_breaks_the_model_gives_no_token() -> None:
    assert broken_run(Breaking(5, float("nan")), Drafter(), drafts=False) == []


def test_rows_are_judged_one_by_one() -> None:
    logits = mx.array([[0.0, 1.0], [float("nan"), 1.0], [float("-inf"), 1.0], [float("inf"), 0.0]])
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        chosen = Sampler(Sampling()).choose(logits.astype(dtype), RowInputs(range(4)))
        assert chosen.pull() == [1, NO_CHOICE, 1, NO_CHOICE]


def test_a_draft_model_that_breaks_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # The random toy's own guesses are unlikely.
    monkeypatch.setattr(draft_model, "_STOP_BELOW", 0.0)
    model, expected = toy_model(), answer()
    proposer = ModelProposer(Toy(breaking()))
    drafter = DraftModelDrafter(DraftModel(k=4), proposer)
    steps, _ = decode(model, PROMPT, drafter, count=60)
    assert tokens_of(steps) == expected
    assert sum(step.accepted for step in steps) >= SOUND // 2, "it drafts while it is sound"


def engine_with(model: Any, other: LoadedModel) -> Engine:
    engine = Engine()
    loaded = LoadedModel(model, other.tokenizer, other.info)
    loaded.eos = frozenset()
    engine.use(loaded)
    engine.try_out()
    return engine


def heard(engine: Engine, prompt: Sequence[int], settings: Settings) -> list[int]:
    ids: list[int] = []

    def run() -> None:
        for event in engine.generate_ids(prompt, settings):
            if isinstance(event, Token):
                ids.append(event.id)

    with pytest.raises(BrokenLogitsError) as caught:
        run()
    assert caught.value.kind == "request"
    assert caught.value.hint
    return ids


@pytest.mark.parametrize("drafter", ["off", "auto", "cacheback", "ngram-mod"])
def test_the_engine_shows_what_came_before_and_keeps_no_cache(toy_engine: Engine, drafter: str) -> None:
    engine = engine_with(breaking(), toy_engine.loaded)
    settings = assign_all(Settings(), {"drafting.drafter": drafter, "sampling.max_tokens": 60}.items())
    assert heard(engine, PROMPT, settings) == answer()[:SOUND]
    assert engine.sequence.tokens == []
    assert heard(engine, PROMPT, settings) == answer()[:SOUND]
