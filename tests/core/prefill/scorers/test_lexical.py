"""lexical: the passage with the question's words wins, at any depth."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from msgspec.structs import replace

from core.prefill.layout import Passages, unknown_layout
from core.prefill.scorers import lexical
from core.prefill.scorers.lexical import lexical_scores
from core.prefill.words import rarest_shared_word, words_of
from core.settings.prefill import Prefill

FILLER = ["Ġthe", "Ġriver", "Ġruns", "Ġslow", "ly", "Ġpast", "Ġa", "Ġtown", ",", "Ġand", "Ġit", "Ġis", "."]
PASSAGE = 32


def scored(document: list[str], question: list[str]) -> np.ndarray:  # type: ignore[type-arg]
    pieces = [*document, *question]
    asks = np.zeros(len(pieces), dtype=np.bool_)
    asks[len(document) :] = True
    return lexical_scores(words_of(pieces), asks, passages_of(asks))


def passages_of(asks: np.ndarray) -> Passages:  # type: ignore[type-arg]
    """Of `PASSAGE` tokens each; `asks` says which ones ask."""
    prompt = replace(unknown_layout(len(asks)), question=asks)
    return prompt.passages(0, len(asks), Prefill(passages="fixed"))


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


@pytest.mark.parametrize("at", [0, 8, 31])
def test_what_is_said_around_a_word_comes_with_it(at: int) -> None:
    """Where its sentence began, and what follows, passage after passage."""
    document = [*filler(1600 + at), "Ġzebra", *filler(1599 - at, 1)]
    found = scored(document, ["Ġzebra"])
    mine = 1600 // PASSAGE
    assert found.argmax() == mine
    assert 0.4 < found[mine - 1] / found[mine] < 0.6
    assert found[mine : mine + 8].tolist() == sorted(found[mine : mine + 8], reverse=True)
    assert found[mine + 7] > 2 * np.median(found)


def test_common_words_count_for_little() -> None:
    document = [*filler(1600), "Ġzebra", *filler(1600, 1)]
    scores = scored(document, ["Ġthe", "Ġriver", "Ġzebra"])
    assert scores.argmax() == 1600 // PASSAGE


def test_word_forms_and_case_meet() -> None:
    document = [*filler(800), "ĠTransl", "ations", *filler(800, 1)]
    assert scored(document, ["Ġtransl", "ate"]).argmax() == 800 // PASSAGE


@pytest.mark.parametrize("pieces", [["æĿ±", "äº¬"], ["▁東京", "の湾"]])
def test_scripts_without_spaces_match_by_characters(pieces: list[str]) -> None:
    document = [*filler(800), *pieces, *filler(800, 1)]
    assert scored(document, pieces).argmax() == 800 // PASSAGE


def test_a_part_of_a_word_is_found_in_the_middle_of_another() -> None:
    document = [*filler(800), "Ġmax", "Queue", "Length", *filler(800, 1)]
    assert scored(document, ["Ġqueue", "Ġlengths"]).argmax() == 800 // PASSAGE


def test_terms_that_meet_in_neighbouring_passages_beat_one_alone() -> None:
    """A sentence does not end where a passage does."""
    together = [*filler(62), "Ġzebra", "Ġ.", "Ġquagga", *filler(31, 1)]
    alone = [*filler(64, 2), "Ġzebra", *filler(31, 3)]
    scores = scored([*alone, *filler(320, 4), *together, *filler(320, 5)], ["Ġzebra", "Ġquagga"])
    assert scores[13:16].max() > scores[:6].max()


@pytest.mark.parametrize("pieces", [[], ["Ġa"], ["\ud800", "İ", "ĠİZMİR"]])
def test_strange_and_short_texts_get_scores(pieces: list[str]) -> None:
    scores = scored(pieces, ["?"])
    assert np.isfinite(scores).all()
    assert len(scores) == 1


@pytest.mark.quiet
def test_100_000_tokens_take_a_moment() -> None:
    """Measured at 40 to 60 ms; what took its time from each term would take seconds."""
    document = filler(100_000)
    started = time.process_time()
    scored(document, ["Ġzebra", "Ġriver", "Ġtown", "Ġand", "Ġit"])
    assert time.process_time() - started < 1.0


def test_without_a_match_the_share_is_spread_evenly() -> None:
    scores = scored(filler(6400), ["Ġquasar"])
    best = np.sort(np.argsort(scores)[-16:])
    assert np.diff(best).max() <= 30
    assert len(scores) == 201


SENTENCES = {
    "en": (
        "The pilots write down which ships came in at night.",
        "At nine the first boat leaves, and at noon the office is closed.",
        "Nobody may pass the buoys while the red lamp is lit.",
        "The fee is paid before a ship leaves the basin.",
        "In fog a long blast is sounded every two minutes.",
        "What the master says is done at once.",
    ),
    "de": (
        "Die Lotsen schreiben auf, welche Schiffe nachts eingelaufen sind.",
        "Um neun fährt das erste Boot, und mittags ist das Büro geschlossen.",
        "Niemand darf an den Tonnen vorbei, solange die rote Lampe brennt.",
        "Die Gebühr wird bezahlt, bevor ein Schiff das Becken verlässt.",
        "Im Nebel wird alle zwei Minuten ein langer Ton gegeben.",
        "Was der Hafenmeister sagt, wird sofort getan.",
    ),
}
PLACES = {
    "en": ("The Aurora's propeller was mended in Malmö.", "Where was the Aurora's propeller mended?"),
    "de": ("Der Propeller der Aurora kam aus Malmö.", "Woher kam der Propeller der Aurora?"),
}


def stands_out(language: str, request: str) -> bool:
    """Of a text of 400 sentences in that language, one of them about a propeller."""
    rng = random.Random(language)
    sentences = [rng.choice(SENTENCES[language]) for _ in range(400)]
    sentences[210] = PLACES[language][0]
    pieces = [f"Ġ{word}" for sentence in sentences for word in sentence.split()]
    asked = [f"Ġ{word}" for word in request.split()]
    question = np.arange(len(pieces) + len(asked)) >= len(pieces)
    found = words_of([*pieces, *asked])
    _, stands = lexical.stands_out(
        found, question, passages_of(question), lambda word: 0.0 if word in COMMON else 1.0
    )
    return stands


# As an English tokenizer has it.
COMMON = {
    *["what", "where", "was", "the", "of", "this", "text", "in", "words", "it", "please"],
    *["summarise", "translate", "into", "plain"],
}


@pytest.mark.parametrize("language", PLACES)
def test_what_is_in_one_place_stands_out(language: str) -> None:
    assert stands_out(language, PLACES[language][1])


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize(
    "request_",
    [
        "Summarise this.",
        "Translate the text into French.",
        "Please rewrite this in plain words.",
        "Proofread it.",
        "Übersetze den Text ins Englische.",
        "Fasse das zusammen.",
        "Schreib das bitte einfacher.",
        "Traduis ce texte en anglais.",
        "Traduce el texto al inglés.",
        "把这篇文章翻译成英文。",
        "この文章を英語に翻訳してください。",
        "tl;dr",
        "",
    ],
)
def test_requests_for_the_whole_stand_out_nowhere(language: str, request_: str) -> None:
    assert not stands_out(language, request_)


def rarest(document: str, question: str, ranks: dict[str, float]) -> float:
    pieces = [f"Ġ{word}" for word in f"{document} {question}".split()]
    asks = np.arange(len(pieces)) >= len(document.split())
    return rarest_shared_word(words_of(pieces), asks, passages_of(asks), lambda word: ranks.get(word, 1.0))


def test_the_rarest_word_that_both_have_counts() -> None:
    document = f"{'the river runs on ' * 40} miniters sets the number of rounds {'the river runs on ' * 40}"
    ranks = {"what": 0.01, "is": 0.0, "the": 0.0, "river": 0.2, "number": 0.1, "zebra": 0.9}
    assert rarest(document, "What is miniters?", ranks) == 1.0
    assert rarest(document, "What is the number?", ranks) == 0.1
    assert rarest(document, "What is the zebra?", ranks) == 0.0
    assert rarest(document, "What is the Number of MINITERS", ranks) == 1.0


def test_a_word_that_is_everywhere_counts_for_nothing() -> None:
    document = "das Boot fährt und das Meer liegt still und wartet " * 60
    assert rarest(document, "Fasse das zusammen.", {}) == 0.0
