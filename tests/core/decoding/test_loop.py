"""The decode loop equals plain decoding, whatever is drafted, and leaves an exact cache."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache

from core.decoding import loop
from core.decoding.answer import FAST, Exactness
from core.decoding.loop import DecodeLoop, Step
from core.decoding.planner import Planner
from core.decoding.sampling import Choices, RowHistory, RowInputs, Sampler, top_ids
from core.drafting.draft import EMPTY, Draft, Drafter, RejectedRow
from core.drafting.gate import PricedGate
from core.kv.cached_sequence import CachedSequence
from core.machine.width_cost import LiveCost
from core.settings.drafting import Gate as GateSettings
from core.settings.request import Sampling
from tests.core.drafters import answer_of
from tests.core.toy import toy_model, toy_sequence

VOCABULARY = 260
NEW_TOKENS = 120
SAMPLINGS = {
    "plain": Sampling(temperature=0.9, seed=3),
    "filters": Sampling(temperature=1.2, top_p=0.9, top_k=20, min_p=0.01, seed=11),
    "penalty": Sampling(temperature=0.8, repetition_penalty=1.3, seed=5),
    "greedy-penalty": Sampling(temperature=0.0, repetition_penalty=1.2),
}


class Scripted(Drafter):
    """Drafts what a test tells it to."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts = list(drafts)

    def draft(self, budget: int) -> Draft:
        return self._drafts.pop(0) if self._drafts else EMPTY


class Listening(Scripted):
    """Keeps what the loop says of rankings."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        super().__init__(drafts)
        self.heard: list[tuple[Sequence[Sequence[int]], Sequence[RejectedRow]]] = []

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        self.heard.append((ids, rejected))


class Oracle(Drafter):
    """Knows the answer and spoils some of its guesses."""

    def __init__(self, answer: Sequence[int], spoil: float, rng: random.Random) -> None:
        self._answer, self._spoil, self._rng = list(answer), spoil, rng
        self._done = 0

    def observe(self, tokens: Sequence[int]) -> None:
        self._done += len(tokens)

    def draft(self, budget: int) -> Draft:
        ahead = self._answer[self._done : self._done + self._rng.randint(0, 9)]
        return Draft.chain([t if self._rng.random() > self._spoil else (t + 1) % VOCABULARY for t in ahead])


@pytest.fixture(scope="module")
def model() -> Any:
    return toy_model()


def prompt_with_repetition(rng: random.Random, length: int = 60) -> list[int]:
    phrases = [[rng.randrange(4, VOCABULARY) for _ in range(rng.randint(2, 8))] for _ in range(4)]
    prompt: list[int] = []
    while len(prompt) < length:
        prompt += rng.choice(phrases)
    return prompt


def plain(model: Any, prompt: Sequence[int], count: int) -> list[int]:
    """mlx-lm's own loop."""
    return [int(t) for t, _ in generate_step(mx.array(list(prompt)), model, max_tokens=count)]


def decode(
    model: Any,
    prompt: Sequence[int],
    drafter: Drafter,
    sampling: Sampling | None = None,
    *,
    count: int = NEW_TOKENS,
    drafts: bool = True,
    exactness: Exactness = FAST,
    recycles: bool = False,
) -> tuple[list[Step], CachedSequence]:
    name = "auto" if recycles else "ngram-simple" if drafts else "off"
    answer = answer_of(model, prompt, drafter, sampling, drafts=name)
    answer.exactness = exactness
    return list(DecodeLoop(answer).steps(count)), answer.sequence


def tokens_of(steps: Sequence[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def test_rankings_behind_the_answer_and_behind_rejected_guesses_are_the_models_own(model: Any) -> None:
    prompt = prompt_with_repetition(random.Random(3))
    first, second, *_ = plain(model, prompt, 3)
    wrong, beside, below = (second + 1) % VOCABULARY, (first + 1) % VOCABULARY, (first + 2) % VOCABULARY
    # Right, then wrong; beside the right one a wrong one, with a child that nobody can reach.
    draft = Draft((first, beside, wrong, below), (-1, -1, 0, 1))
    drafter = Listening([draft])
    decode(model, prompt, drafter, count=4, recycles=True)

    def ranked(*more: int) -> list[int]:
        return top_ids(model(mx.array([[*prompt, *more]]))[0, -1:], [0])[0]

    told, rejected = drafter.heard[0]
    assert list(told) == [ranked(), ranked(first)]
    assert [(token, list(row)) for token, row in rejected] == [
        (beside, ranked(beside)),
        (wrong, ranked(first, wrong)),
    ]
    assert all(not behind for _, behind in drafter.heard[1:]), "a step without a draft rejects nothing"


def test_a_step_tells_what_was_guessed_for_the_place_of_its_own_token(model: Any) -> None:
    prompt = prompt_with_repetition(random.Random(3))
    first, second, third, *_ = plain(model, prompt, 4)
    wrong, beside, below = (second + 1) % VOCABULARY, (second + 2) % VOCABULARY, (second + 3) % VOCABULARY
    for draft, rejected in (
        (Draft.chain([first, wrong, third]), ((wrong, third),)),
        (Draft.chain([first, wrong, *range(20)]), ((wrong, *range(7)),)),
        (Draft((first, wrong, beside, below), (-1, 0, 0, 1)), ((wrong,), (beside,))),
        (Draft.chain([first, second]), ()),
        (EMPTY, ()),
    ):
        steps, _ = decode(model, prompt, Scripted([draft]), count=24)
        assert steps[0].rejected == rejected


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
def test_rankings_are_read_from_what_came_with_the_ids(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second wait for the device would cost a GPU as much as drafting."""
    model: Any = toy_model()
    model.set_dtype(dtype)
    prompt = prompt_with_repetition(random.Random(3))
    expected = plain(model, prompt, 12)
    awaited: list[set[int]] = []
    ranked: list[int] = []
    evaluate = mx.eval

    def waited(*arrays: Any) -> None:
        awaited.append({id(array) for array in arrays})
        evaluate(*arrays)

    def ranks(logits: mx.array, rows: Sequence[int]) -> list[list[int]]:
        assert logits.dtype == mx.float32
        assert id(logits) in awaited[-1]
        ranked.append(len(rows))
        return top_ids(logits, rows)

    answer = answer_of(model, prompt, Scripted([Draft.chain(expected[:2]), EMPTY, EMPTY]), drafts="auto")
    monkeypatch.setattr(mx, "eval", waited)
    monkeypatch.setattr("core.decoding.loop.top_ids", ranks)
    steps = list(DecodeLoop(answer).steps(12))
    assert tokens_of(steps) == expected
    assert len(awaited) == len(ranked) == len(steps)  # pipelined ones, too


@pytest.mark.sweep
@pytest.mark.parametrize("spoil", [0.0, 0.2, 1.0])
def test_mixed_good_and_bad_drafts_equal_plain_decoding(model: Any, spoil: float) -> None:
    rng = random.Random(5)
    prompt = prompt_with_repetition(rng)
    answer = plain(model, prompt, NEW_TOKENS)
    steps, sequence = decode(model, prompt, Oracle(answer, spoil, rng))
    assert tokens_of(steps) == answer
    assert_cache_equals_cold_start(model, sequence)
    if spoil == 0.0:
        assert all(step.accepted == step.drafted for step in steps)


class Unsure(Oracle):
    """Has estimates, which say nothing."""

    def draft(self, budget: int) -> Draft:
        tokens = super().draft(budget).tokens
        return Draft.chain(tokens, [self._rng.random() for _ in tokens])

    def sure(self) -> float:
        return self._rng.random()


@pytest.mark.sweep
@pytest.mark.parametrize("asking", [0.05, 0.6])
@pytest.mark.parametrize("sampling", ["greedy", *SAMPLINGS])
def test_entering_and_leaving_the_pipeline_equals_plain_decoding(
    model: Any, asking: float, sampling: str
) -> None:
    chosen = SAMPLINGS.get(sampling)
    prompt = prompt_with_repetition(random.Random(8))
    expected = tokens_of(decode(model, prompt, Drafter(), chosen, drafts=False, count=200)[0])
    drafter = Unsure(expected, 0.4, random.Random(2))
    answer = answer_of(model, prompt, drafter, chosen, drafts="auto")
    answer.planner = Planner(lambda width, tree: 1.0 + asking + 0.1 * (width - 1))
    answer.gate = PricedGate(GateSettings())
    steps = list(DecodeLoop(answer).steps(200))
    assert tokens_of(steps) == expected
    kinds = {step.pipeline for step in steps}
    assert kinds >= ({"enters", "leaves"} if asking < 0.1 else {"single", "enters", "ahead", "leaves"})
    assert sum(step.accepted for step in steps) > 10
    assert_cache_equals_cold_start(model, answer.sequence)


def test_a_rest_runs_ahead_at_once_where_asking_takes_long(model: Any) -> None:
    class Doubtful(Drafter):
        def draft(self, budget: int) -> Draft:
            return Draft.chain([5], [0.3])

    answer = answer_of(model, [7, 8, 9], Doubtful(), drafts="auto")
    answer.planner = Planner(lambda width, tree: 1.6 + 0.1 * (width - 1))
    answer.gate = PricedGate(GateSettings())
    steps = list(DecodeLoop(answer).steps(12))
    rest = next(number for number, step in enumerate(steps) if not step.drafted)
    assert rest > 0
    assert [step.pipeline for step in steps[rest : rest + 3]] == ["enters", "ahead", "ahead"]


@pytest.mark.sweep
@pytest.mark.parametrize("asking", [0.05, 0.6])
def test_nothing_is_drafted_where_every_price_says_that_it_loses(model: Any, asking: float) -> None:
    """Though every guess is right, and the drafter is sure of it."""

    class Certain(Oracle):
        asked = 0

        def draft(self, budget: int) -> Draft:
            self.asked += 1
            tokens = super().draft(budget).tokens
            return Draft.chain(tokens, [1.0] * len(tokens))

        def sure(self) -> float:
            return 1.0

    prompt = prompt_with_repetition(random.Random(5))
    expected = plain(model, prompt, 150)
    drafter = Certain(expected, 0.0, random.Random(1))
    answer = answer_of(model, prompt, drafter, drafts="auto")
    answer.planner = Planner(lambda width, tree: 1.0 + asking + 2.5 * (width - 1))
    gate = answer.gate = PricedGate(GateSettings())
    steps = list(DecodeLoop(answer).steps(150))
    assert tokens_of(steps) == expected
    assert not any(step.drafted for step in steps)
    assert drafter.asked < 60
    assert sum(step.pipeline == "ahead" for step in steps) > 75
    # The beginning of the line under an answer if drafting was paused.
    assert gate.state == "resting"


@pytest.mark.sweep
def test_asking_that_costs_more_than_it_brings_leaves_the_speed_of_plain_decoding(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock on which a pass takes 1 and drafting 2."""
    now_s = 0.0
    pull = Choices.pull

    class Slow(Unsure):
        def draft(self, budget: int) -> Draft:
            nonlocal now_s
            now_s += 2.0
            return super().draft(min(budget, 1))

    def pulled(choices: Choices, *others: mx.array) -> list[int]:
        nonlocal now_s
        now_s += 1.0
        return pull(choices, *others)

    prompt = prompt_with_repetition(random.Random(5))
    expected = plain(model, prompt, 200)
    monkeypatch.setattr(Choices, "pull", pulled)
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now_s))
    answer = answer_of(model, prompt, Slow(expected, 0.5, random.Random(1)), drafts="auto")
    cost = LiveCost()
    answer.planner, answer.gate = Planner(cost), PricedGate(GateSettings(), cost.is_priced)
    answer.cost = cost
    emitted, took_s = 0, 0.0
    for step in DecodeLoop(answer).steps(200):
        emitted += len(step.tokens)
        took_s += step.took_s
    assert emitted == 200
    assert took_s == now_s
    # With a draft at each step about 400: a step takes 3 and emits 1.5 tokens.
    assert now_s < 260
    assert cost.overhead == pytest.approx(2.0, abs=0.5)


@pytest.mark.parametrize("drafts", [True, False])
def test_the_next_pass_is_started_before_tokens_are_handed_out(
    model: Any, monkeypatch: pytest.MonkeyPatch, drafts: bool
) -> None:
    """So a step's host time is drafting, and neither what is done with its tokens nor waiting."""
    now_s, started = 0.0, 0

    class Slow(Oracle):
        def draft(self, budget: int) -> Draft:
            nonlocal now_s
            now_s += 3.0
            return super().draft(min(budget, 2))

    def starting(choices: Choices, *others: mx.array) -> None:
        nonlocal now_s, started
        now_s, started = now_s + 0.5, started + 1

    def pulled(choices: Choices, *others: mx.array) -> list[int]:
        nonlocal now_s
        now_s += 1.0
        return pull(choices, *others)

    prompt = prompt_with_repetition(random.Random(5))
    expected = plain(model, prompt, 40)
    pull = Choices.pull
    monkeypatch.setattr(Choices, "start", starting)
    monkeypatch.setattr(Choices, "pull", pulled)
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now_s))
    drafter = Slow(expected, 0.3, random.Random(1)) if drafts else Drafter()
    answer = answer_of(model, prompt, drafter, drafts="ngram-simple" if drafts else "off")
    steps: list[Step] = []
    for step in DecodeLoop(answer).steps(40):
        steps.append(step)
        now_s += 100.0  # what is done with the tokens
        done = sum(len(each.tokens) for each in steps) == 40
        assert started == len(steps) + (not done)
    assert tokens_of(steps) == expected
    if drafts:
        assert {step.host_s for step in steps if step.drafted} == {3.0}
    else:
        assert {step.pipeline for step in steps} == {"enters", "ahead", "leaves"}
        assert not any(step.host_s for step in steps)


@pytest.mark.sweep
def test_seeds_and_positions_matter(model: Any) -> None:
    prompt = prompt_with_repetition(random.Random(1))
    runs = [
        tokens_of(decode(model, prompt, Drafter(), Sampling(temperature=1.5, seed=s), drafts=False)[0])
        for s in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert len(set(runs[0])) > 10


def test_a_token_that_is_still_computed_counts_like_a_known_one(model: Any) -> None:
    sequence = toy_sequence(model)
    history = RowHistory(sequence, Sampler(Sampling(frequency_penalty=0.5)))
    model(mx.array([[3, 7, 9]]), cache=sequence.cache)
    sequence.append([3, 7, 9])
    known = history.inputs([7], EMPTY, None, 260).counts
    computed = history.inputs([], EMPTY, mx.array([7]), 260).counts
    assert known is not None
    assert computed is not None
    assert known.tolist() == computed.tolist()
    assert known[0, 7].item() == 2.0


def test_the_penalty_sees_the_prompt() -> None:
    logits = mx.array([[0.0, 2.0, 1.9, -1.0]])
    sampler = Sampler(Sampling(repetition_penalty=1.5))
    assert sampler.choose(logits, RowInputs([0])).pull() == [1]
    assert sampler.choose(logits, RowInputs([0], mx.array([[1]], dtype=mx.uint32))).pull() == [2]


@pytest.mark.sweep
def test_sampling_follows_the_distribution() -> None:
    """20,000 position-seeded draws from four tokens: each frequency within 4 standard errors."""
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    draws = 20_000
    logits = mx.broadcast_to(mx.log(mx.array(probabilities)), (draws, 4))
    chosen = Sampler(Sampling(temperature=1.0, seed=7)).choose(logits, RowInputs(range(draws))).pull()
    counts = np.bincount(np.array(chosen), minlength=4) / draws
    assert np.all(np.abs(counts - probabilities) < 4 * np.sqrt(probabilities * (1 - probabilities) / draws))


def test_stopping_anywhere_leaves_an_exact_cache(model: Any) -> None:
    rng = random.Random(4)
    prompt = prompt_with_repetition(rng)
    answer = plain(model, prompt, 60)
    for stop_after in (1, 2, 5, 9):
        at_start = answer_of(model, prompt, Oracle(answer, 0.3, random.Random(stop_after)))
        loop, sequence = DecodeLoop(at_start), at_start.sequence
        shown: list[int] = []
        for number, step in enumerate(loop.steps(60), 1):
            shown += step.tokens
            if number == stop_after:
                break
        assert sequence.tokens == (prompt + shown)[: len(sequence.tokens)]
        assert len(sequence.tokens) >= len(prompt) + len(shown) - 1
        assert_cache_equals_cold_start(model, sequence)


def assert_cache_equals_cold_start(model: Any, sequence: CachedSequence) -> None:
    """Every layer's keys and values are those of reading the sequence's tokens from nothing."""
    cold = make_prompt_cache(model)
    model(mx.array(sequence.tokens)[None], cache=cold)
    for warm_layer, cold_layer in zip(sequence.cache, cold):
        assert warm_layer.offset == cold_layer.offset == len(sequence.tokens)
        length = cold_layer.offset
        for warm, expected in ((warm_layer.keys, cold_layer.keys), (warm_layer.values, cold_layer.values)):
            difference = mx.abs(warm[..., :length, :] - expected[..., :length, :]).max()
            assert float(difference) < 1e-4
