"""Drawn answers: runs against a slow reference, streams against whole texts, and the work that is done."""

from __future__ import annotations

import random

import pytest

from core.origins import Index, Source, Tracer, trace
from core.origins.automaton import Automaton
from core.origins.index import Index as _Index
from tests.core.origins import reference
from tests.core.origins.test_runs import indexed

_VOCABULARY = """the of and to in is tenant landlord pays rent deposit notice month kitchen garden boiler
March 1,200 35 shall must Keller München naïve X-500 5kg € % über straße"""
_WORDS = _VOCABULARY.split()
_CHARACTERS = "契約期間は二年とする更新の可能家賃敷金円月日"
_SEPARATORS = (
    " ",
    " ",
    " ",
    " ",
    "\n",
    "  ",
    " – ",
    ", ",
    ". ",
    "-",
    " **",
    "** ",
    " “",
    "” ",
    "\n- ",
    "\n> ",
)


def _sentence(draw: random.Random, most: int) -> list[str]:
    if draw.random() < 0.15:
        return [draw.choice(_CHARACTERS) for _ in range(draw.randrange(1, 2 * most))]
    words = [draw.choice(_WORDS) for _ in range(draw.randrange(1, most))]
    return [*words, f"room{draw.randrange(40)}", *words[::2]]


def _written(draw: random.Random, words: list[str]) -> str:
    """The words with drawn separators, letter case and breaks."""
    text = ""
    for word in words:
        if word in _CHARACTERS:
            text += word + ("\n" if draw.random() < 0.05 else "")
            continue
        changed = word.upper() if draw.random() < 0.05 and word.isalpha() else word
        if word.isalpha() and len(word) > 5 and draw.random() < 0.1:
            changed = f"{word[:3]}-\n{word[3:]}"
        text += changed + draw.choice(_SEPARATORS)
    return text


def _drawn(seed: int) -> tuple[list[str], str]:
    """Overlapping documents, and an answer of copies with edits."""
    draw = random.Random(seed)
    pool = [_sentence(draw, 14) for _ in range(draw.randrange(2, 8))]
    chosen = [draw.choices(pool, k=draw.randrange(1, 8)) for _ in range(draw.randrange(1, 4))]
    documents = [_written(draw, [word for part in parts for word in part]) for parts in chosen]
    said: list[str] = []
    for _ in range(draw.randrange(1, 8)):
        part = list(draw.choice(pool))
        start = draw.randrange(len(part))
        part = part[start : start + draw.randrange(1, 16)] if draw.random() < 0.5 else part
        if draw.random() < 0.4:
            part[draw.randrange(len(part))] = draw.choice(_WORDS)
        said += part
    # Quotations count from two words, which the reference does not know.
    return documents, _written(draw, said).replace("“", "").replace("”", "")


def _check(seed: int) -> None:
    documents, answer = _drawn(seed)
    sources, indexes = indexed(*documents)
    found = trace(answer, sources, indexes)
    expected = reference.runs(answer, documents)
    assert [(run.start, run.end) for run in found.runs] == [run[:2] for run in expected], (documents, answer)
    for run, (_, _, places) in zip(found.runs, expected, strict=True):
        given = [(place.source, place.start, place.end) for place in (run.place, *run.others)]
        assert given[0] == places[0]
        assert sorted(given) == places
    tracer, draw, at = Tracer(sources, indexes), random.Random(seed), 0
    while at < len(answer):
        end = min(len(answer), at + draw.randrange(1, 40))
        tracer.extend(answer[at:end])
        assert tracer.origins == trace(answer[:end], sources, indexes), (documents, answer[:end])
        at = end


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(24))
def test_drawn_answers_equal_the_reference(seed: int) -> None:
    _check(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_many_drawn_answers_equal_the_reference(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        _check(seed)


def test_an_index_in_slices_equals_one_made_at_once() -> None:
    text = "\n".join(_drawn(seed)[1] for seed in range(60))
    whole, sliced = Index(text), Index(text)
    assert whole.build()
    steps = 0
    while not sliced.build(0.0):
        steps += 1
    assert steps > 10
    assert (whole.values, whole.sequence, whole.starts, whole.lower) == (
        sliced.values,
        sliced.sequence,
        sliced.starts,
        sliced.lower,
    )
    answer = _drawn(7)[1]
    assert trace(answer, [Source("", text)], [whole]) == trace(answer, [Source("", text)], [sliced])


def test_an_index_that_is_not_complete_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"build\(\)"):
        trace("What is it?", [Source("", "text")], [Index("text")])
    with pytest.raises(ValueError, match="1 sources have 0 indexes"):
        trace("What is it?", [Source("", "text")], [])


# ---- work

_TEXTS = {
    "one word": "ten " * 4000,
    "two words": "ten of " * 2000,
    "one number": "12 " * 4000,
    "fibonacci": " ".join("ab"[bool(n & (n >> 1))] for n in range(4000)),
    "distinct": " ".join(f"word{n}" for n in range(4000)),
    "one line": "the tenant pays 1,200 euros " * 800,
    "characters": "契約" * 2000,
    "quotes": '"' * 4000,
    "capitals": "Keller " * 4000,
    "digits": "1" * 4000,
    "brackets": "[" * 4000 + "](" * 200,
    "dashes": "- " * 2000 + "-\n" * 500,
}


class _Counted(list[int]):
    """Counts how often an item is read."""

    reads = 0

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        type(self).reads += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("kind", ["one word", "two words", "fibonacci", "distinct"])
def test_matching_takes_linear_work(kind: str) -> None:
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(word, len(numbers)) for word in _TEXTS[kind].split()]
    work = []
    for length in (len(ids) // 2, len(ids)):
        _Counted.reads = 0
        automaton = Automaton(_Counted(ids[:length]))
        assert automaton.extend(length)
        state = matched = 0
        for word in [*ids[:length], *reversed(ids[:length])]:
            state, matched = automaton.step(state, matched, word)
        work.append(_Counted.reads)
    assert work[1] < 2.5 * work[0]
    assert work[1] < 20 * len(ids)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", _TEXTS)
def test_a_hostile_text_is_traced_in_bounded_work(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at for places grows with the answer, not with answer times document."""
    looked = 0
    plain = _Index.places

    def counted(self: Index, sequence: list[int], near: int = 0) -> list[int]:
        nonlocal looked
        found = plain(self, sequence, near)
        looked += len(sequence) + len(found)
        return found

    monkeypatch.setattr(_Index, "places", counted)
    text = _TEXTS[kind]
    sources, indexes = indexed(text)
    answer = text[: len(text) // 2]
    found = trace(answer, sources, indexes)
    assert looked <= 200 * len(answer)
    assert all(fact.end > fact.start for fact in found.facts)
    assert all(answer[run.start : run.end].strip() for run in found.runs)


@pytest.mark.parametrize("seed", range(40))
def test_the_automaton_finds_the_longest_match_at_each_word(seed: int) -> None:
    """Few different words make many clones."""
    draw = random.Random(seed)
    kinds = draw.choice((1, 2, 3, 5))
    ids = [draw.randrange(kinds) for _ in range(draw.randrange(30))]
    parts = {tuple(ids[first:last]) for last in range(len(ids) + 1) for first in range(last + 1)}
    automaton = Automaton(ids)
    while not automaton.extend(3):
        pass
    state = length = 0
    said = [draw.randrange(-1, kinds) for _ in range(30)]
    for at, word in enumerate(said, 1):
        state, length = automaton.step(state, length, word)
        assert length == max(size for size in range(at + 1) if tuple(said[at - size : at]) in parts)
        end = automaton.first_end(state)
        assert ids[end - length : end] == said[at - length : at]
