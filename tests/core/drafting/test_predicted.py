"""A predicted answer is followed across changes, copied where it holds, and counted truly."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest

from core.decoding.planner import Planner
from core.drafting.draft import EMPTY, NO_FACTS, Draft, Drafter, Facts
from core.drafting.predicted import MAX_TOKENS, PredictedDrafter, Prediction, prediction_counts
from core.drafting.registry import DRAFTERS, DrafterSpec
from core.settings import Settings
from tests.core.drafters import build
from tests.tuning.replay import COST_TABLES, ReplayTally, replay_stream
from tests.tuning.streams import Stream

LINES = 300
# Lines of code that have nothing in common with each other but their keywords, as in a file.
WORDS = [
    "order",
    "price",
    "name",
    "count",
    "index",
    "total",
    "error",
    "value",
    "client",
    "table",
    "row",
    "key",
]


KNOWN: dict[str, int] = {}


def code(seed: int, lines: int = LINES) -> str:
    rng = random.Random(seed)
    word = lambda: f"{rng.choice(WORDS)}_{rng.choice(WORDS)}{rng.randrange(100)}"  # noqa: E731
    return "".join(f"    {word()} = {word()}({word()}, {rng.randrange(1000)})\n" for _ in range(lines))


def ids(text: str) -> list[int]:
    """A token a word, number or sign."""
    pieces = re.findall(r" *[a-z]+|\d+|\s*\W", text)
    return [KNOWN.setdefault(piece, len(KNOWN)) for piece in pieces]


FILE = code(1)


def replayed(spec: DrafterSpec, answer: Sequence[int], prediction: Sequence[int], cost: str) -> ReplayTally:
    drafter = build(spec)
    planned = spec.planned(Settings())
    if prediction:
        drafter = PredictedDrafter(drafter, prediction, planned=planned)
    table = COST_TABLES[cost]
    planner = Planner(table.cost) if planned else None
    prompt = ids("Write it again, please.")
    return replay_stream(drafter, Stream(prompt, list(answer)), table.cost, Settings().gate, planner)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "lines", "cost"),
    [
        ("auto", LINES, "cpu"),
        ("auto", LINES, "apple"),
        *((n, 100, "cpu") for n, spec in DRAFTERS.items() if spec.drafts and not spec.needs_proposer),
    ],
)
def test_a_right_prediction_of_a_file_makes_wide_blocks(name: str, lines: int, cost: str) -> None:
    answer, spec = ids(code(1, lines)), DRAFTERS[name]
    without = replayed(spec, answer, (), cost)
    right = replayed(spec, answer, answer, cost)
    assert without.tokens == right.tokens == len(answer)
    assert right.tokens / right.steps > 20
    assert right.tokens / right.steps > 4 * without.tokens / without.steps
    assert right.speed > 2 * without.speed
    assert right.accepted / right.tested > 0.99


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["auto", "ngram-simple"])
def test_an_edited_file_is_copied_across_its_changes(name: str) -> None:
    """A name replaced in every fifth line, lines left out, and lines put in."""
    rng = random.Random(3)
    lines: list[str] = []
    for number, line in enumerate(FILE.splitlines(keepends=True)):
        if number % 20 == 7:
            continue
        lines.append(line.replace("=", "= await ", 1) if number % 5 == 0 else line)
        if number % 30 == 11:
            lines.append(code(rng.randrange(10**6), 2))
    answer, prediction = ids("".join(lines)), ids(FILE)
    without = replayed(DRAFTERS[name], answer, (), "cpu")
    edited = replayed(DRAFTERS[name], answer, prediction, "cpu")
    assert edited.tokens / edited.steps > 5
    assert edited.speed > 2 * without.speed
    came, never = prediction_counts(prediction, (), answer)
    assert came + never == len(prediction)
    assert 0.93 < came / len(prediction) < 0.97


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["auto", "ngram-simple", "cacheback"])
@pytest.mark.parametrize("cost", ["cpu", "apple"])
def test_a_wrong_prediction_costs_little(name: str, cost: str) -> None:
    answer = ids(code(1, 60))
    without = replayed(DRAFTERS[name], answer, (), cost)
    wrong = replayed(DRAFTERS[name], answer, [400 + token for token in answer], cost)
    assert wrong.speed > 0.97 * without.speed
    # Of the same kind: what agrees by chance is copied, and not for long.
    other = replayed(DRAFTERS[name], answer, ids(code(2, 60)), cost)
    assert other.speed > 0.95 * without.speed


def test_the_first_draft_is_the_predictions_beginning() -> None:
    drafter = PredictedDrafter(Drafter(), range(100, 400), planned=True)
    drafter.begin([1, 2, 3])
    draft = drafter.draft(1000)
    assert draft.tokens[:5] == (100, 101, 102, 103, 104)
    assert draft.is_chain
    assert len(draft) <= MAX_TOKENS
    drafter.observe(range(100, 160))
    grown = drafter.draft(1000)
    assert grown.tokens == tuple(range(160, 160 + MAX_TOKENS))
    assert min(grown.confidence) > 0.98 > draft.confidence[0]
    assert drafter.draft(3).tokens == (160, 161, 162)


def test_it_ends_with_the_prediction() -> None:
    drafter = PredictedDrafter(Drafter(), [5, 6, 7], planned=True)
    drafter.begin([1])
    drafter.observe([5, 6])
    assert drafter.draft(9).tokens == (7,)
    drafter.observe([7])
    assert drafter.draft(9) == EMPTY
    drafter.observe([8, 9])
    assert drafter.draft(9) == EMPTY


def test_an_answer_that_was_begun_is_predicted_from_there() -> None:
    drafter = PredictedDrafter(Drafter(), range(100, 200), planned=True)
    for begun, drafted in ((range(100, 120), (120, 121, 122)), (range(20), (100, 101, 102))):
        drafter.begin([1, *begun], Facts(begun))
        assert drafter.draft(3).tokens == drafted


def test_the_underlying_drafter_gets_the_facts() -> None:
    inner = Sure()
    PredictedDrafter(inner, range(100, 200), planned=True).begin([1, 2], Facts([2]))
    assert inner.facts == Facts([2])


class Sure(Drafter):
    """Guesses one token, with a confidence or without an opinion, and keeps what it hears."""

    def __init__(self, *confidence: float) -> None:
        self._confidence = confidence
        self.heard: list[int] = []
        self.fed_back = 0
        self.facts = NO_FACTS

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self.facts = facts

    def observe(self, tokens: Sequence[int]) -> None:
        self.heard += tokens

    def draft(self, budget: int) -> Draft:
        return Draft((7,), (-1,), self._confidence)

    def feedback(self, draft: Draft, accepted: int) -> None:
        assert draft.tokens == (7,)
        self.fed_back += 1


@pytest.mark.parametrize("confidence", [(), (0.9,)])
def test_a_prediction_that_went_wrong_gives_way(confidence: tuple[float, ...]) -> None:
    inner = Sure(*confidence)
    drafter = PredictedDrafter(inner, range(100, 200), planned=True)
    drafter.begin([1])
    first = drafter.draft(9)
    assert first.tokens[0] == 100
    drafter.feedback(first, 0)
    drafter.observe(range(50, 60))
    second = drafter.draft(9)
    assert second.tokens == (7,)
    drafter.feedback(second, 1)
    assert inner.fed_back == 1
    assert inner.heard == list(range(50, 60))


def test_a_lost_prediction_continues_at_the_longest_match() -> None:
    block = [1, 2, 3, 4, 5]
    predicted = Prediction([*block, 50, *block, 60, *block, 70])
    for token in (*block, 50, *range(900, 920)):
        predicted.follow(token)
    assert predicted.upcoming(5) == ((), [])
    for token in (50, *block):
        predicted.follow(token)
    assert predicted.upcoming(1)[0] == [60]
    assert predicted.matched_tokens == 11


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        ("abcdefgh", (8, 0)),
        ("", (0, 8)),
        ("zzzzzz", (0, 8)),
        ("abcdXfgh", (7, 1)),
        ("abcdefghabcdefgh", (8, 0)),
        ("____________defgh", (5, 3)),
    ],
)
def test_each_predicted_token_counts_once(answer: str, counts: tuple[int, int]) -> None:
    assert prediction_counts(list(b"abcdefgh"), (), list(answer.encode())) == counts


def test_what_an_answer_had_begun_with_is_in_neither_count() -> None:
    assert prediction_counts(list(b"abcdefgh"), list(b"abc"), list(b"defxx")) == (3, 2)


@pytest.mark.parametrize("prediction", [(), (3,), (10**9, -5, 2**40), tuple([4] * 5000)], ids=len)
def test_any_prediction_is_taken(prediction: tuple[int, ...]) -> None:
    rng = random.Random(len(prediction))
    drafter = PredictedDrafter(Drafter(), prediction, planned=True)
    drafter.begin([1, 2])
    for _ in range(300):
        drafter.draft(20)
        drafter.observe([rng.choice([3, 4, 4, 4, 4, 10**9, -5])])
