"""Runs of an answer by the definition, slowly: every match is searched for in every source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from core.origins.words import Word, is_unspaced, words

# Words, and characters of unspaced scripts, that make a run.
LEAST = 5.0


def weight(some: Sequence[Word]) -> float:
    return sum(0.5 if is_unspaced(word.key) else 1.0 for word in some)


def occurrences(some: Sequence[str], text: Sequence[str]) -> list[int]:
    return [at for at in range(len(text) - len(some) + 1) if list(text[at : at + len(some)]) == list(some)]


def is_rare(key: str, texts: Sequence[Sequence[str]]) -> bool:
    found = sum(text.count(key) for text in texts)
    most = max(3, sum(map(len, texts)) // 500)
    return 0 < found <= most and (len(key) >= 4 or is_unspaced(key) or key[0].isdigit())


def longest_matches(said: Sequence[str], texts: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """First and last (exclusive) words of what stands in a source and cannot be continued in it, by the end.

    What a longer one with the same end contains is left out.
    """
    found: dict[int, int] = {}
    for text in texts:
        for first in range(len(said)):
            for last in range(first + 1, len(said) + 1):
                if not occurrences(said[first:last], text):
                    break
                ends_here = last == len(said) or not occurrences(said[first : last + 1], text)
                begins_here = first == 0 or not occurrences(said[first - 1 : last], text)
                if ends_here and begins_here:
                    found[last] = min(first, found.get(last, first))
    return sorted(((first, last) for last, first in found.items()), key=lambda each: each[1])


def runs(answer: str, sources: Sequence[str]) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    """Characters of each run, and all its places as (source, start, end)."""
    said = list(words(answer))
    keys = [word.key for word in said]
    texts = [list(words(source)) for source in sources]
    text_keys = [[word.key for word in text] for text in texts]
    rare = {key: is_rare(key, text_keys) for key in set(keys)}

    def counts(first: int, last: int) -> bool:
        return weight(said[first:last]) >= LEAST and any(rare[key] for key in keys[first:last])

    kept: list[tuple[int, int, int]] = []  # first, last, length before it was cut
    for first, last in longest_matches(keys, text_keys):
        if not counts(first, last):
            continue
        length, begin = last - first, first
        for _ in count():
            if not kept or kept[-1][1] <= begin:
                break
            before_first, before_last, before_length = kept[-1]
            if before_length >= length:
                begin = before_last
                break
            kept.pop()
            if counts(before_first, first):
                kept.append((before_first, first, before_length))
        if counts(begin, last):
            kept.append((begin, last, length))
    found = []
    for first, last, _ in kept:
        places = [
            (source, text[at].start, text[at + last - first - 1].end)
            for source, text in enumerate(texts)
            for at in occurrences(keys[first:last], text_keys[source])
        ]
        found.append((said[first].start, said[last - 1].end, places))
    return found
