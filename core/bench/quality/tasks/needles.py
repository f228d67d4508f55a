"""Needles: one thing hidden in prose, and RULER's variants with several.

Sentences and questions are our own; the variants follow the RULER paper (arXiv 2404.06654):
one key among many (multi-key), one key with several values (multi-value), several keys asked
at once (multi-query). Values there are numbers of seven digits.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from random import Random

from core.bench import prose
from core.bench.quality.tasks.case import Case, Count, fill, scatter

_KEYS = (
    *("amber", "basil", "cedar", "delta", "ember", "fjord", "garnet", "hazel", "indigo", "jasper", "kelp"),
    *("linden", "maple", "nutmeg", "onyx", "poplar", "quartz", "raven", "saffron", "thistle", "umber"),
    *("violet", "walnut", "yarrow", "zephyr"),
)


def needle(depth: float) -> Callable[[Random, int, Count], Case]:
    """A UUID, planted at `depth` of the document."""

    def build(rng: Random, room: int, count: Count) -> Case:
        value = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        planted = f"The access code of the sealed archive is {value}."
        parts = fill(prose.paragraphs(rng), room - count(planted), count)
        return Case(
            "\n\n".join(scatter(parts, [planted], [depth])),
            "What is the access code of the sealed archive? Answer with the code only.",
            "The access code of the sealed archive is",
            (value,),
            f" {value}.",
        )

    return build


def multi_key(rng: Random, room: int, count: Count) -> Case:
    """Eight keys with a number each; one is asked for."""
    return _several(rng, room, count, keys=8, values=1, asked=1)


def multi_value(rng: Random, room: int, count: Count) -> Case:
    """One key with four numbers; all are asked for."""
    return _several(rng, room, count, keys=1, values=4, asked=1)


def multi_query(rng: Random, room: int, count: Count) -> Case:
    """Four keys with a number each; all are asked for."""
    return _several(rng, room, count, keys=4, values=1, asked=4)


def _several(rng: Random, room: int, count: Count, *, keys: int, values: int, asked: int) -> Case:
    names = rng.sample(_KEYS, keys)
    numbers = {name: [str(rng.randint(1_000_000, 9_999_999)) for _ in range(values)] for name in names}
    sentences = [
        f"One of the magic numbers for {name} is {number}." for name in names for number in numbers[name]
    ]
    rng.shuffle(sentences)
    parts = fill(prose.paragraphs(rng), room - sum(count(s) + 2 for s in sentences), count)
    parts = scatter(parts, sentences, [rng.uniform(0.05, 0.95) for _ in sentences])
    wanted = names[:asked]
    answers = [number for name in wanted for number in numbers[name]]
    what = " and ".join([", ".join(wanted[:-1]), wanted[-1]]) if len(wanted) > 1 else wanted[0]
    one = len(answers) == 1
    return Case(
        "\n\n".join(parts),
        f"What {'is the magic number' if one else 'are all the magic numbers'} for {what}"
        " mentioned in the text? Answer with the numbers only.",
        f"The magic {'number' if one else 'numbers'} for {what} mentioned in the text"
        f" {'is' if one else 'are'}",
        tuple(answers),
        f" {', '.join(answers)}.",
    )
