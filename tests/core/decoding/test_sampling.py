"""Choices at the rows of a block against formulas written out row by row."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from msgspec.structs import replace

from core.decoding.sampling import (
    LEAST_LOGPROB,
    NO_CHOICE,
    PENALTY_WINDOW_TOKENS,
    TOP_IDS,
    RowHistory,
    RowInputs,
    Sampler,
    logprobs,
    top_ids,
)
from core.drafting.draft import EMPTY, Draft
from core.events import FIRST_IMAGE_ROW
from core.kv.cached_sequence import CachedSequence
from core.settings.request import Sampling

VOCABULARY = 24


def sequence_of(tokens: list[int]) -> CachedSequence:
    """Without a model: histories look at the tokens only."""
    sequence = CachedSequence(list)
    sequence.append(tokens)
    return sequence


def drawn_tree(rng: random.Random, most: int = 6) -> Draft:
    tokens, parents = list[int](), list[int]()
    for node in range(rng.randint(0, most)):
        tokens.append(rng.randrange(VOCABULARY))
        parents.append(rng.randint(-1, node - 1))
    return Draft(tuple(tokens), tuple(parents))


def paths_of(draft: Draft) -> list[list[int]]:
    paths = [list[int]()]
    for token, parent in zip(draft.tokens, draft.parents):
        paths.append([*paths[parent + 1], token])
    return paths


def banned_after(answer: list[int], length: int) -> set[int]:
    """Each token that would complete a run of `length` tokens which `answer` has already."""
    runs = {tuple(answer[at : at + length]) for at in range(len(answer) - length + 1)}
    return {token for token in range(VOCABULARY) if (*answer[len(answer) - length + 1 :], token) in runs}


EVERYTHING = Sampling(
    repetition_penalty=1.3, frequency_penalty=0.4, presence_penalty=0.2, no_repeat_ngram_size=3
)


@pytest.mark.parametrize("seed", range(12))
def test_the_history_of_a_row_is_its_path(seed: int) -> None:
    """While blocks are appended, folded into the next one, and taken back."""
    rng = random.Random(seed)
    size = rng.choice((1, 2, 3, 4))
    sampler = Sampler(replace(EVERYTHING, no_repeat_ngram_size=size))
    context = [rng.randrange(VOCABULARY) for _ in range(rng.choice((1, 5, 80)))]
    begun = rng.randint(0, min(4, len(context)))
    sequence = sequence_of(context[:-1])
    history = RowHistory(sequence, sampler, begun)
    first, lead = len(context) - begun, context[-1:]
    for number in range(12):
        draft, held = drawn_tree(rng), [*sequence.tokens]
        is_unknown = number > 0 and rng.random() < 0.3 and len(lead) == 1
        if is_unknown:
            inputs = history.inputs([], EMPTY, mx.array(lead), VOCABULARY)
            draft = EMPTY
        else:
            inputs = history.inputs(lead, draft, None, VOCABULARY)
        paths = [[*held, *lead, *path] for path in paths_of(draft)]
        assert list(inputs.positions) == [len(path) for path in paths]
        assert inputs.windows is not None
        windows: Any = inputs.windows.tolist()
        assert [{*row} for row in windows] == [{*path[-PENALTY_WINDOW_TOKENS:]} for path in paths]
        assert inputs.counts is not None
        for row, path in zip(np.array(inputs.counts), paths, strict=True):
            counted = Counter(path[first:])
            assert row.tolist() == [counted[token] for token in range(VOCABULARY)]
        found = [set[int]() for _ in paths]
        if inputs.repeats is not None:
            told: Any = [each.tolist() for each in inputs.repeats]
            for at, token, amount in zip(*told):
                assert amount in (0.0, -np.inf)
                if amount:
                    found[at].add(token)
        assert found == [banned_after(path[first:], size) for path in paths]
        # Some of the block is accepted; some of that may stay pending.
        rest = [*lead, *rng.choice(paths_of(draft))]
        kept = rng.randint(0, len(rest))
        sequence.append(rest[:kept])
        lead = [*rest[kept:], rng.randrange(VOCABULARY)] if len(rest) - kept < 4 else rest[kept:][:1]


@pytest.mark.parametrize("count", [3, 62, 63, 64, 65, 200])
def test_rows_of_images_are_no_words_for_penalties(count: int) -> None:
    rng = random.Random(count)
    text = [rng.randrange(VOCABULARY) for _ in range(count)]
    tokens = list(text)
    tokens[count - 2 : count - 2] = range(FIRST_IMAGE_ROW, FIRST_IMAGE_ROW + 90)
    history = RowHistory(sequence_of(tokens), Sampler(Sampling(repetition_penalty=1.2)))
    for given, lead in ((None, [7, 8]), (mx.array([7]), [7])):
        windows = history.inputs([] if given is not None else lead, EMPTY, given, VOCABULARY).windows
        assert windows is not None
        found: Any = windows.tolist()
        assert {*found[0]} == {*[*text, *lead][-PENALTY_WINDOW_TOKENS:]}
        assert len(found[0]) == min(PENALTY_WINDOW_TOKENS, count + len(lead))


def test_a_history_records_what_is_used_only() -> None:
    for sampling, used in (
        (Sampling(), ()),
        (Sampling(repetition_penalty=1.1), ("windows",)),
        (Sampling(repetition_penalty=0.9), ("windows",)),
        (Sampling(frequency_penalty=0.1), ("counts",)),
        (Sampling(presence_penalty=-0.1), ("counts",)),
        (Sampling(no_repeat_ngram_size=1), ("repeats",)),
    ):
        inputs = RowHistory(sequence_of([3, 4, 3]), Sampler(sampling), begun=2).inputs([4], EMPTY, None, 9)
        assert [name for name in ("windows", "counts", "repeats") if getattr(inputs, name) is not None] == [
            *used
        ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("width", [np.float32, np.float16])
def test_penalties_and_bias_are_added_in_their_order(seed: int, width: Any) -> None:
    rng = np.random.default_rng(seed)
    rows = 4
    logits = rng.normal(size=(rows, VOCABULARY)).astype(width)
    settings = Sampling(repetition_penalty=1.7, frequency_penalty=0.5, presence_penalty=0.25)
    bias = {2: 0.5, 7: -3.0}
    windows = rng.integers(0, VOCABULARY, (rows, 6))
    counts = rng.integers(0, 3, (rows, VOCABULARY)).astype(np.float32)
    repeats = [(0, 5), (2, 1), (2, 9)]
    expected = logits.astype(np.float32)
    for row in range(rows):
        for token in {*windows[row].tolist()}:
            value = expected[row, token]
            expected[row, token] = value * 1.7 if value < 0 else value / 1.7
    expected -= counts * 0.5 + (counts > 0) * 0.25
    for token, amount in bias.items():
        expected[:, token] += amount
    allowed = rng.random((rows, VOCABULARY)) < 0.5
    allowed[:, 0] = True
    given = RowInputs(
        range(rows),
        mx.array(windows.astype(np.uint32)),
        mx.array(counts),
        repeats=(*(mx.array(list(each), dtype=mx.uint32) for each in zip(*repeats)), mx.full(3, -mx.inf)),  # type: ignore[arg-type]
    )
    sampler = Sampler(settings, bias)
    masked = sampler.choose(mx.array(logits), given._replace(allowed=mx.array(allowed))).pull()
    assert masked == np.where(allowed, expected, -np.inf).argmax(axis=1).tolist()  # a grammar decides alone
    for row, token in repeats:
        expected[row, token] = -np.inf
    assert sampler.choose(mx.array(logits), given).pull() == expected.argmax(axis=1).tolist()


def admitted(logits: np.ndarray[Any, Any], settings: Sampling) -> set[int]:
    """The tokens that top-p, min-p and top-k leave, in this order, each on the untempered distribution."""
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    order = np.argsort(chances)
    left = {*range(len(logits))}
    if settings.top_p < 1.0:
        sums = np.cumsum(chances[order])
        left &= {int(order[at]) for at in range(len(order)) if sums[at] > 1 - settings.top_p}
    if settings.min_p > 0:
        left &= {int(at) for at in range(len(logits)) if chances[at] >= settings.min_p * chances.max()}
    if 0 < settings.top_k < len(logits):
        best = sorted(left, key=lambda at: -chances[at])[: settings.top_k]
        left &= {*best}
    return left


@pytest.mark.parametrize(
    "settings",
    [
        Sampling(temperature=3.0),
        Sampling(temperature=3.0, top_p=0.8),
        Sampling(temperature=3.0, min_p=0.3),
        Sampling(temperature=3.0, top_k=3),
        Sampling(temperature=3.0, top_k=1),
        Sampling(temperature=3.0, top_k=8),
        Sampling(temperature=3.0, top_k=9),
        Sampling(temperature=3.0, top_p=0.9, min_p=0.1, top_k=4),
    ],
    ids=str,
)
def test_what_the_filters_leave_is_drawn_and_nothing_else(settings: Sampling) -> None:
    logits = np.array([2.0, 1.6, 1.2, 0.9, 0.3, -0.2, -0.7, -1.5], np.float32)
    rows = mx.broadcast_to(mx.array(logits), (600, len(logits)))
    drawn = Sampler(settings).choose(rows, RowInputs(range(600))).pull()
    assert {*drawn} == admitted(logits, settings)


def test_a_row_is_drawn_by_seed_and_position_alone() -> None:
    """The noise of a position is that of its key, whatever the block; so an answer can be repeated."""
    logits = np.random.default_rng(1).normal(size=(5, VOCABULARY)).astype(np.float32)
    for seed, temperature in ((0, 1.0), (3, 0.7), (2**31, 1.9)):
        sampler = Sampler(Sampling(temperature=temperature, seed=seed))
        places = [0, 1, 7, 1_000_000, 12]
        chosen = sampler.choose(mx.array(logits), RowInputs(places)).pull()
        for row, place in enumerate(places):
            key = ((seed + 1) * 0x9E3779B97F4A7C15 + place * 0xD1342543DE82EF95) % 2**64
            noise = np.array(mx.random.gumbel((VOCABULARY,), key=mx.random.key(key ^ (key >> 31))))
            assert chosen[row] == int((logits[row] / temperature + noise).argmax())
            assert sampler.choose(mx.array(logits[row : row + 1]), RowInputs([place])).pull() == [chosen[row]]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_row_without_a_largest_value_has_no_choice(temperature: float) -> None:
    plain = [1.0, 2.0, 0.5]
    rows = [
        plain,
        [1.0, np.nan, 2.0],
        [1.0, np.inf, 2.0],
        [-np.inf] * 3,
        [0.0] * 3,
        [4.0] * 3,
        [-np.inf, 1.0, 0.0],
    ]
    logits = mx.array(np.array(rows, np.float32))
    chosen = Sampler(Sampling(temperature=temperature)).choose(logits, RowInputs(range(len(rows)))).pull()
    assert [token == NO_CHOICE for token in chosen] == [False, True, True, True, True, True, False]
    if not temperature:
        assert chosen[0] == chosen[-1] == 1


@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0])
def test_rankings_have_the_best_ids_near_the_best(spread: float) -> None:
    """Of flat rows, too, of which more than a few hundred are near."""
    logits = (np.random.default_rng(2).normal(size=(4, 2000)) * spread).astype(np.float32)
    logits[1, 5:] = logits[1, 5:] - 100
    logits[2, [3, 9]] = logits[2].max() + 1.0  # equal ones
    got = top_ids(mx.array(logits), [3, 1, 2])
    for found, row in zip(got, logits[[3, 1, 2]]):
        order = [at for at in np.argsort(-row, kind="stable")[:TOP_IDS] if row[at] >= row.max() - 8.0]
        assert row[found].tolist() == row[order].tolist()
        assert spread == 1.0 or found == order  # of so many equal ones any
    assert len(got[1]) <= 5


@pytest.mark.parametrize("top", [0, 1, 3, 5, 9])
def test_logprobs_are_the_log_softmax_of_raw_logits(top: int) -> None:
    logits = np.random.default_rng(3).normal(size=(3, 5)).astype(np.float32) * 3
    logits[1, 2] = logits[1, 4]
    logits[2, [0, 3]] = -np.inf
    tokens = [4, 2, 3]
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = np.maximum(expected, LEAST_LOGPROB)
    found = logprobs(mx.array(logits), tokens, top)
    assert len(found) == 3
    for row, token, each in zip(expected, tokens, found):
        assert each.own == pytest.approx(row[token], abs=1e-5)
        order = sorted(range(5), key=lambda at: (-row[at], at))[: min(top, 5)]
        assert [value for _, value in each.likely] == pytest.approx([row[at] for at in order], abs=1e-5)
        if top in (3, 5):  # a tie may be cut anywhere
            assert [token for token, _ in each.likely] == order
    assert found[2].own == LEAST_LOGPROB
