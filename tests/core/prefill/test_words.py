"""Words of a prompt against the formulas written out term by term."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest
from msgspec.structs import replace

from core.prefill.layout import Passages
from core.prefill.scorers.embedding import (
    _CLEAR_WORDS,
    _NEAR,
    _NEAR_FOR_ALL,
    _NEAR_WITH_WORDS,
    Meaning,
    matches,
)
from core.prefill.scorers.lexical import lexical_scores
from core.prefill.scorers.scorer import Scored, carried
from core.prefill.words import asked_by, clearness, matching, rarest_shared_word, words_of

VOCABULARY = ["harbour", "pilot", "fee", "Ada", "the", "of", "x2", "leuchtturmwärterin", "7", "mole"]


def drawn(seed: int, count: int = 60) -> tuple[list[str], list[int], int]:
    """Words with spaces and marks, the passage of each, and how many passages there are."""
    rng = random.Random(seed)
    pieces = [rng.choice(("Ġ", " ", "", "Ġ(", ".Ġ")) + rng.choice(VOCABULARY) for _ in range(count)]
    passages = rng.randint(2, 9)
    cuts = sorted(rng.sample(range(1, count), passages - 1))
    of = [sum(at >= cut for cut in cuts) for at in range(count)]
    return pieces, of, passages


def terms(pieces: list[str]) -> tuple[list[tuple[object, int]], list[tuple[object, int]]]:
    """Stems with pairs, and runs of four characters, each with the number of its token."""
    text = "".join(pieces).replace("Ġ", " ")
    owners = [number for number, piece in enumerate(pieces) for _ in piece]
    low = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    words, at = list[tuple[str, int]](), 0
    while at < len(low):
        end = at
        while end < len(low) and (low[end].isalnum() or ord(low[end]) >= 128):
            end += 1
        if end > at:
            words.append((low[at:end][:6], owners[at]))
        at = max(end, at + 1)
    pairs = [((one, two), owner) for (one, _), (two, owner) in pairwise(words)]
    runs = [(low[n : n + 4], owners[n]) for n in range(len(low) - 3) if "  " not in low[n : n + 4]]
    return [*words, *pairs], list(runs)


def bm25(times: list[Counter[object]], asked: set[object], count: int) -> list[float]:
    def rarity(term: object) -> float:
        having = sum(term in each for each in times)
        return log(1 + (count - having + 0.5) / (having + 0.5))

    return [sum(rarity(t) ** 2 * each[t] * 2.2 / (each[t] + 1.2) for t in asked) for each in times]


def with_next(times: list[Counter[object]]) -> list[Counter[object]]:
    return [one + other for one, other in zip(times, [*times[1:], Counter()])]


@pytest.mark.parametrize("seed", range(12))
def test_scores_are_bm25_of_stems_and_runs(seed: int) -> None:
    pieces, of, count = drawn(seed)
    question = np.zeros(len(pieces), np.bool_)
    question[random.Random(seed).sample(range(len(pieces)), 6)] = True
    places = np.array([-1 if asks else at for at, asks in zip(of, question)], np.int32)
    firsts = np.array([of.index(number) for number in range(count)], np.int32)
    passages = Passages(firsts, len(pieces), places)
    found = words_of(pieces)
    total, best_runs = np.zeros(count), 0.0
    for weight, kind in zip((0.5, 1.0), terms(pieces)):
        asked = {term for term, owner in kind if question[owner]}
        times = [Counter(t for t, owner in kind if places[owner] == at) for at in range(count)]
        pairs = bm25(with_next(times), asked, count)
        either = [max(own, before) for own, before in zip(pairs, [0.0, *pairs])]
        scores = np.array(either) + np.array(bm25(times, asked, count))
        total += weight * scores / (scores.max() or 1.0)
        best_runs = max(pairs)
    asked_terms = asked_by(found, question)
    assert matching(found, asked_terms, passages) == pytest.approx(total)
    assert clearness(found, asked_terms, passages) == pytest.approx(best_runs / log(1 + count) ** 2)
    lexical = lexical_scores(found, question, passages)
    assert np.abs(lexical - carried(total)).max() <= 0.031 * lexical.max()


def test_terms_keep_their_tokens_when_tokens_are_inserted() -> None:
    pieces, _, _ = drawn(1, 20)
    found = words_of(pieces)
    moved = found.shifted(7, 3)
    assert moved.owners.tolist() == [at + 3 * (at >= 7) for at in found.owners.tolist()]
    assert (moved.codes == found.codes).all()


@pytest.mark.parametrize(("holding", "counts"), [(1, True), (2, True), (3, False)])
def test_a_word_in_more_than_a_quarter_of_the_passages_is_common(holding: int, counts: bool) -> None:
    """Of eight passages, two are a quarter; of three, one always counts."""
    passages = [["Ġquiet", "Ġriver"] for _ in range(8)]
    for at in range(holding):
        passages[2 * at][1] = "Ġzebra"
    pieces = [piece for passage in passages for piece in passage] + ["Ġzebra"]
    firsts = np.arange(0, 16, 2, dtype=np.int32)
    question = np.arange(17) == 16
    of = np.array([*np.repeat(np.arange(8), 2), -1], np.int32)
    found = rarest_shared_word(
        words_of(pieces), question, Passages(firsts, 17, of), {"zebra": 0.5}.__getitem__
    )
    assert found == (0.5 if counts else 0.0)


@pytest.mark.parametrize("about_all", [False, True])
@pytest.mark.parametrize("by_words", [False, True])
def test_a_passage_answers_from_its_threshold_on(about_all: bool, by_words: bool) -> None:
    """The similarity of the best passage is compared; unknown ones don't count."""
    least = np.float32(_NEAR_FOR_ALL if about_all else _NEAR_WITH_WORDS if by_words else _NEAR)
    least = (
        least
        if float(least) >= (1.0 if about_all else 0.65 if by_words else 0.9)
        else np.nextafter(least, np.float32(9))
    )
    words = Scored(np.zeros(3, np.float32), by_words, 0.0)
    for similarity, is_found in ((least, True), (np.nextafter(least, np.float32(-9)), False)):
        meaning = Meaning(np.array([np.nan, similarity, -1.0], np.float32), np.full(3, 0.5, np.float32))
        assert matches(meaning, words, about_all) is is_found
    foreign = Meaning(np.full(3, 2.0, np.float32), np.full(3, 0.2, np.float32), fragmented=True)
    for clear, is_found in ((_CLEAR_WORDS, not about_all), (_CLEAR_WORDS - 1e-6, False)):
        assert matches(foreign, replace(words, clearness=clear), about_all) is is_found
