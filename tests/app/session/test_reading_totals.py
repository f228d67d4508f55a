"""Totals of a prefill: each token counts once, and Keep's share is found again."""

from __future__ import annotations

import random

import pytest

from app.chat.reading_map import chosen_words
from app.session.reading import totals_of, totals_of_passages
from core.events import Passage, ReadingMap


def drawn(chance: random.Random) -> ReadingMap:
    """A map of passages that are chosen, always read, read earlier or skipped."""
    passages, at, always = [], 0, 0
    for number in range(chance.randrange(1, 60)):
        tokens = chance.randrange(1, 50)
        kind = chance.choice(("chosen", "always", "earlier", "skipped"))
        always += tokens if kind == "always" else 0
        kept = kind != "skipped"
        passages.append(Passage(at, at + tokens, kept, 0.5, number % 3 - 1, earlier=kind == "earlier"))
        at += tokens
    return ReadingMap("r", "lexical", at, 1, tuple(passages), always_tokens=always)


@pytest.mark.parametrize("seed", range(20))
def test_each_token_of_the_map_is_counted_once(seed: int) -> None:
    reading = drawn(random.Random(seed))
    totals = totals_of(reading)
    assert totals.all == reading.prompt_tokens
    assert totals.always == reading.always_tokens
    assert totals.kept == sum(p.end - p.start for p in reading.passages if p.kept and not p.earlier)
    assert totals.skipped == sum(p.end - p.start for p in reading.passages if not p.kept)
    # The documents' totals are those of the whole.
    parts = [totals_of_passages([p for p in reading.passages if p.source == n]) for n in (-1, 0, 1)]
    assert sum(part.all for part in parts) == totals.all
    assert sum(part.skipped for part in parts) == totals.skipped
    assert sum(part.earlier for part in parts) == totals.earlier


def test_the_share_that_keep_asks_for_is_shown() -> None:
    passages = tuple(Passage(10 * n, 10 * n + 10, n < 35, 0.5) for n in range(100))
    reading = ReadingMap("r", "lexical", 1000, 350, passages, always_tokens=50)
    assert chosen_words(reading) == "300 of 1,000 tokens (30%) + 50 always read"
