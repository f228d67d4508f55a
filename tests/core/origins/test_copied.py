"""Exact parts of a short text in its sources, of any length."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from core.origins import Copy, copies


def parts(text: str, *sources: str) -> list[tuple[str, int]]:
    return [(text[copy.start : copy.end], copy.source) for copy in copies(text, sources)]


def test_the_longest_part_counts_and_of_equal_ones_the_first_source() -> None:
    assert parts("https://a.example/x?q=Bern", "What is new in Bern?", "See https://a.example/x?q=Bern.") == [
        ("https://a.example/x?q=Bern", 1)
    ]
    assert parts("Bern", "in Bern", "Bern") == [("Bern", 0)]
    assert parts("weather in Bern today", "the weather in", "Bern today") == [
        ("weather in", 0),
        ("Bern today", 1),
    ]


def test_parts_are_whole_words_as_they_are_written() -> None:
    assert parts("/tmp/report.txt", "/tmp/reports.txt") == [("/tmp/", 0), (".txt", 0)]
    assert parts("Lease", "lease or release") == []
    assert parts("the  long\nway", "the long way") == [("the  long\nway", 0)]
    assert parts("snake_case", "snake case") == [("snake", 0), ("case", 0)]


def test_a_short_part_counts_only_as_the_whole_text() -> None:
    assert parts("7", "rule 7 holds") == [("7", 0)]
    assert parts("number 7 of them", "rule 7 holds") == []
    assert parts("say a b now", "x a b y") == []
    assert parts("…", "… and so on") == []
    assert parts("", "words") == parts("words") == []


def test_parts_are_in_order_and_stand_in_their_sources() -> None:
    random = Random(7)
    words = ["alpha", "beta", "7", "/", ".", "://", "gamma", "x"]
    for _ in range(300):
        sources = ["".join(random.choices([*words, " "], k=random.randint(0, 12))) for _ in range(3)]
        text = "".join(random.choices([*words, " "], k=random.randint(0, 12)))
        found = copies(text, sources)
        assert found == sorted(found)
        assert all(first.end <= then.start for first, then in pairwise(found))
        for copy in found:
            assert "".join(text[copy.start : copy.end].split()) in "".join(sources[copy.source].split())
            assert isinstance(copy, Copy)
