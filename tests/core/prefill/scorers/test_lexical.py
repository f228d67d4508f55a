"""lexical: the passage with the question's words wins, at any depth."""

from __future__ import annotations

import random

import numpy as np
import pytest

from core.prefill.scorers.lexical import lexical_scores

FILLER = ["Ġthe", "Ġriver", "Ġruns", "Ġslow", "ly", "Ġpast", "Ġa", "Ġtown", ",", "Ġand", "Ġit", "Ġis", "."]
PASSAGE = 32


def scored(document: list[str], question: list[str]) -> np.ndarray:  # type: ignore[type-arg]
    pieces = [*document, *question]
    asks = np.zeros(len(pieces), dtype=np.bool_)
    asks[len(document) :] = True
    return lexical_scores(pieces, asks, PASSAGE)[::PASSAGE]


def filler(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [rng.choice(FILLER) for _ in range(count)]


@pytest.mark.parametrize("depth", [0.1, 0.5, 0.9])
def test_a_needle_is_found(depth: float) -> None:
    needle = ["ĠThe", "ĠAub", "erg", "ine", "Ġcode", "Ġis", "Ġ", "4", "7", "1", "1", "."]
    at = int(3200 * depth)
    document = [*filler(at), *needle, *filler(3200 - at, 1)]
    scores = scored(document, ["What", "Ġis", "Ġthe", "Ġaub", "erg", "ine", "Ġcode", "?"])
    assert at // PASSAGE in np.argsort(scores)[-2:]
    neighbours = [at // PASSAGE - 1, at // PASSAGE + 1]
    assert min(scores[neighbours]) > np.median(scores)


@pytest.mark.parametrize(("at", "before"), [(0, 0.5), (8, 0.375), (31, 0.016)])
def test_what_is_said_around_a_word_comes_with_it(at: int, before: float) -> None:
    """Where its sentence began, the more the nearer; and what follows, passage after passage."""
    document = [*filler(1600 + at), "Ġzebra", *filler(1599 - at, 1)]
    found = scored(document, ["Ġzebra"])
    mine = 1600 // PASSAGE
    assert found.argmax() == mine
    assert found[mine - 1] / found[mine] == pytest.approx(before, abs=0.03)
    assert found[mine : mine + 8].tolist() == sorted(found[mine : mine + 8], reverse=True)
    assert found[mine + 7] > 2 * np.median(found)


def test_common_words_count_for_little() -> None:
    document = [*filler(1600), "Ġzebra", *filler(1600, 1)]
    scores = scored(document, ["Ġthe", "Ġriver", "Ġzebra"])
    assert scores.argmax() == 1600 // PASSAGE


def test_word_forms_and_case_meet() -> None:
    document = [*filler(800), "ĠTransl", "ations", *filler(800, 1)]
    assert scored(document, ["Ġtransl", "ate"]).argmax() == 800 // PASSAGE


def test_scripts_without_spaces_match_by_piece() -> None:
    document = [*filler(800), "æĿ±", "äº¬", *filler(800, 1)]
    assert scored(document, ["æĿ±", "äº¬"]).argmax() == 800 // PASSAGE


def test_without_a_match_the_share_is_spread_evenly() -> None:
    scores = scored(filler(6400), ["Ġquasar"])
    best = np.sort(np.argsort(scores)[-16:])
    assert np.diff(best).max() <= 30
    assert len(scores) == 201
