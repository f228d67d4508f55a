"""The passage of a search's hit: one line around the first match, with all matches marked."""

from __future__ import annotations

import random
import re

import pytest

from app.session.chats.archive import passage_of


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("fog in the harbour", ((0, 3), (11, 18))),
        ("FOG\n\nin  fog", ((0, 3), (7, 10))),
        ("İ fogfog", ((2, 5), (5, 8))),
        ("nothing", ()),
        ("", ()),
    ],
)
def test_every_match_is_marked_from_the_first_letter_on(
    text: str, marks: tuple[tuple[int, int], ...]
) -> None:
    assert passage_of(text, ["fog", "Harbour"]) == (" ".join(text.split()), marks)


@pytest.mark.parametrize("around", [5, 40])
@pytest.mark.parametrize("seed", range(20))
def test_a_passage_is_cut_around_the_first_match(seed: int, around: int) -> None:
    """At a word if there is one near; each part of the text has a number, so that it is found again."""
    rng = random.Random(seed)
    count = rng.choice((1, 8, 60))
    parts = [f"{rng.choice(('fog', 'a', 'harbour', 'mole'))}-{at:02}" for at in range(count)]
    line = " ".join(parts)
    passage, marks = passage_of(rng.choice((" ", "\n", "  ")).join(parts), ["FOG", "mole"], around)
    inner = passage.removeprefix("…").removesuffix("…")
    begin = line.index(inner)
    places = [match.span() for match in re.finditer("fog|mole", line)]
    first = places[0][0] if places else 0
    assert first - around <= begin <= first
    assert passage == "…" * (begin > 0) + inner + "…" * (begin + len(inner) < len(line))
    assert begin + len(inner) == min(len(line), first + 3 * around)
    before = begin - (begin > 0)
    shown = [(a, b) for a, b in places if a >= begin and b <= begin + len(inner)]
    assert list(marks) == [(a - before, b - before) for a, b in shown]
    assert begin == 0 or line[begin - 1] == " " or " " not in line[max(0, first - around) : first]
