"""Tasks that need the whole document, after the RULER paper (arXiv 2404.06654), in our own words.

Common words (CWE: ten words far more often than the others), frequent words (FWE: coded words
whose frequency falls as a zeta distribution, the three most frequent asked for) and variable
tracking (VT: a chain of assignments, all names with one value asked for). Sparse prefill cannot
answer the first two by design; they show where its limit is.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

from core.bench import prose
from core.bench.quality.tasks.case import Case, Count, fill, scatter

_COMMON, _COMMON_TIMES, _RARE_TIMES = 10, 30, 3
_FREQUENT = 3
_ZETA_EXPONENT = 2.0
_HOPS = 4
_SYLLABLES = (
    *("ba", "cor", "den", "fi", "gal", "hum", "jo", "kel"),
    *("lim", "mor", "nas", "pel", "quin", "rov", "sut", "tam"),
)

_VARIABLES = [f"{a}{b}{c}" for a in "BDFGHKL" for b in "MNPQRST" for c in "VWXZ"]


def common_words(rng: Random, room: int, count: Count) -> Case:
    """CWE. The common words appear ten times as often as the others."""
    words = _words(rng, 600)
    common, others = words[:_COMMON], iter(words[_COMMON:])
    cost = max(2, count(" ".join(f"{i}. {word}" for i, word in enumerate(words[:100], 200))) // 100)
    places = max(2 * _COMMON, room // (cost + 1))
    scale = max(2, min(_COMMON_TIMES, places // (2 * _COMMON)))
    listed = [word for word in common for _ in range(scale)]
    times = max(1, scale * _RARE_TIMES // _COMMON_TIMES)
    while len(listed) + times <= places:
        word = next(others, None)
        if word is None:
            break
        listed += [word] * times
    rng.shuffle(listed)
    return Case(
        " ".join(f"{i}. {word}" for i, word in enumerate(listed, 1)),
        "Which ten words appear most often in the numbered list above? Answer with the words only.",
        "The ten most common words are",
        tuple(common),
        f" {', '.join(common)}.",
        needed=7,
    )


def frequent_words(rng: Random, room: int, count: Count) -> Case:
    """FWE. Dots are noise, as in the paper."""
    words = _words(rng, 60)
    weights = [1.0 / rank**_ZETA_EXPONENT for rank in range(1, len(words) + 1)]
    coded: list[str] = []
    while count(" ".join(coded)) < room - 8 and len(coded) < room:
        coded += rng.choices([*words, "..."], [*weights, 0.3], k=max(8, room // 64))
    while coded and count(" ".join(coded)) > room:
        del coded[-8:]
    ranked = sorted(words, key=coded.count, reverse=True)[:_FREQUENT]
    return Case(
        " ".join(coded),
        "Ignore the dots. Which three coded words appear most often in the text above?",
        "The three most frequent words are",
        tuple(ranked),
        f" {', '.join(ranked)}.",
    )


def variable_tracking(rng: Random, room: int, count: Count) -> Case:
    """VT. One chain of four hops that is asked for, one that is not, both spread over prose."""
    names = rng.sample(_VARIABLES, 2 * (_HOPS + 1))
    wanted, other = names[: _HOPS + 1], names[_HOPS + 1 :]
    value, decoy = (str(v) for v in rng.sample(range(10_000, 100_000), 2))
    lines = [*_chain(wanted, value), *_chain(other, decoy)]
    depths = [depth for _ in range(2) for depth in sorted(rng.uniform(0.02, 0.98) for _ in wanted)]
    parts = fill(prose.paragraphs(rng), room - sum(count(line) + 2 for line in lines), count)
    parts = scatter(parts, lines, depths)
    return Case(
        "\n\n".join(parts),
        f"Find all variables that are assigned the value {value}, directly or through another variable.",
        f"The variables that are assigned the value {value} are",
        tuple(wanted),
        f" {', '.join(wanted)}.",
    )


def _chain(names: list[str], value: str) -> list[str]:
    return [f"VAR {names[0]} = {value}", *(f"VAR {b} = VAR {a}" for a, b in pairwise(names))]


def _words(rng: Random, how_many: int) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < how_many:
        made["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3)))] = None
    return list(made)
