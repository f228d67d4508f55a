"""The tasks of `bench quality`, generated from seeds, and the names of its readers.

Needles and RULER's variants (arXiv 2404.06654) hide facts in prose; the adversarial tasks are those of the
SpecPrefill paper. Documents and questions are our own.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Literal

from msgspec import Struct

from core.bench.cases import paragraphs
from core.errors import RequestError

# ---- parts of the bench, and names of the ways to read a prompt, which `quality_readers` implements

# The continuation of a document, a requested passage of a document, the answer to a task.
Part = Literal["document", "passage", "task"]

DENSE = "dense"
SCORELESS = ("random", "head-and-tail", "end")
_HINDSIGHT = "hindsight-"


def hindsight(name: str) -> int:
    """N of the reader `hindsight-N`, which scores with the N tokens that follow; 0 for other readers."""
    count = name.removeprefix(_HINDSIGHT) if name.startswith(_HINDSIGHT) else ""
    return int(count) if count.isdecimal() else 0


# ---- tasks

Count = Callable[[str], int]


class Case(Struct, frozen=True):
    """One question about a generated document.

    An answer passes if it contains `needed` of `answers` as whole words, in any case. `lead` is the given
    beginning of the assistant's message, so that a small model answers instead of chatting (as in RULER).
    `gold` is the right continuation, whose likelihood is measured: it is informative where the model fails.
    """

    document: str
    question: str
    lead: str
    answers: tuple[str, ...]
    gold: str
    needed: int = 0  # 0 means all

    def found(self, answer: str) -> int:
        """Number of `answers` in the answer."""
        patterns = (rf"(?<!\w){re.escape(word)}(?!\w)" for word in self.answers)
        return sum(bool(re.search(pattern, answer, re.IGNORECASE)) for pattern in patterns)

    def passes(self, answer: str) -> bool:
        """Whether the answer contains at least `needed` of `answers`."""
        return self.found(answer) >= (self.needed or len(self.answers))


class Task(Struct, frozen=True):
    """`build(rng, room, count)` returns a case with a document of about `room` tokens, as counted by `count`.

    `family`: the source of the task, `adversarial` (the SpecPrefill paper), `ruler` (arXiv 2404.06654) or
    `own`. `answer_tokens` limits an answer. `everything`: the task needs the whole document, so sparse
    prefill is expected to fail it.
    """

    name: str
    family: str
    build: Callable[[Random, int, Count], Case]
    answer_tokens: int = 48
    everything: bool = False


def fill(parts: Iterator[str], room: int, count: Count) -> list[str]:
    """The first parts that fit into `room` tokens, at least one."""
    taken: list[str] = []
    used = 0
    for part in parts:
        used += count(part) + 2  # the blank line between two
        if taken and used > room:
            break
        taken.append(part)
    return taken


def scatter(parts: list[str], planted: list[str], depths: list[float]) -> list[str]:
    """`parts` with each of `planted` inserted at its depth (0 to 1). Rising depths keep the order."""
    result = list(parts)
    for sentence, depth in sorted(zip(planted, depths, strict=True), key=lambda pair: pair[1])[::-1]:
        result.insert(round(depth * len(parts)), sentence)
    return result


# ---- needles

_KEYS = (
    *("amber", "basil", "cedar", "delta", "ember", "fjord", "garnet", "hazel", "indigo", "jasper", "kelp"),
    *("linden", "maple", "nutmeg", "onyx", "poplar", "quartz", "raven", "saffron", "thistle", "umber"),
    *("violet", "walnut", "yarrow", "zephyr"),
)


def needle(depth: float) -> Callable[[Random, int, Count], Case]:
    """A UUID at `depth` (0 to 1) of the document."""

    def build(rng: Random, room: int, count: Count) -> Case:
        value = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        planted = f"The access code of the sealed archive is {value}."
        parts = fill(paragraphs(rng), room - count(planted), count)
        return Case(
            "\n\n".join(scatter(parts, [planted], [depth])),
            "What is the access code of the sealed archive? Answer with the code only.",
            "The access code of the sealed archive is",
            (value,),
            f" {value}.",
        )

    return build


def multi_key(rng: Random, room: int, count: Count) -> Case:
    """Eight keys with one number each; the question is about one key."""
    return _several(rng, room, count, keys=8, values=1, asked=1)


def multi_value(rng: Random, room: int, count: Count) -> Case:
    """One key with four numbers; the question is about all of them."""
    return _several(rng, room, count, keys=1, values=4, asked=1)


def multi_query(rng: Random, room: int, count: Count) -> Case:
    """Four keys with one number each; the question is about all of them."""
    return _several(rng, room, count, keys=4, values=1, asked=4)


def _several(rng: Random, room: int, count: Count, *, keys: int, values: int, asked: int) -> Case:
    names = rng.sample(_KEYS, keys)
    numbers = {name: [str(rng.randint(1_000_000, 9_999_999)) for _ in range(values)] for name in names}
    sentences = [
        f"One of the magic numbers for {name} is {number}." for name in names for number in numbers[name]
    ]
    rng.shuffle(sentences)
    parts = fill(paragraphs(rng), room - sum(count(s) + 2 for s in sentences), count)
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


# ---- structured documents: JSON records, code with a bug, a back-reference, nested XML

_RECORDS = 80
_TOWNS = ("Ashby", "Brill", "Corley", "Dunmow", "Elsham", "Farley", "Gosford", "Hexley", "Ilkton", "Jarrow")
_STATES = ("open", "closed", "idle", "broken")
_COLOURS = ("crimson", "turquoise", "ochre", "lavender", "olive", "scarlet", "beige", "teal")


def json_three(rng: Random, room: int, count: Count) -> Case:
    """Three values from an array of 80 records, or of fewer if `room` is too small."""
    ids = rng.sample(range(100, 1000), _RECORDS)
    litres = rng.sample(range(1000, 10000), _RECORDS)
    records = [
        json.dumps({"id": f"P{number}", "pump": rng.choice(_STATES), "litres": held}, separators=(",", ":"))
        for number, held in zip(ids, litres)
    ]
    kept = len(fill(iter(records), room, count))
    asked = sorted(rng.sample(range(kept), 3))
    left = room - sum(count(record) + 2 for record in records[:kept])
    parts = fill(paragraphs(rng), left, count) if kept == _RECORDS else []
    names = [f"P{ids[i]}" for i in asked]
    answers = [str(litres[i]) for i in asked]
    gold = ", ".join(f"{name}: {answer}" for name, answer in zip(names, answers))
    return Case(
        "\n\n".join([*parts, "[\n" + ",\n".join(records[:kept]) + "\n]"]),
        f"What are the litres of the records with the ids {names[0]}, {names[1]} and {names[2]}?",
        f"The litres are {names[0]}:",
        tuple(answers),
        gold.removeprefix(f"{names[0]}:") + ".",
    )


def planted_bug(rng: Random, room: int, count: Count) -> Case:
    """A module of similar functions, one of which omits the first value."""
    nouns = rng.sample(_BUG_NOUNS, len(_BUG_NOUNS))
    names = [f"total_{noun}" for noun in nouns]
    functions = [_function(name, noun, "len(values)") for name, noun in zip(names, nouns)]
    kept = len(fill(iter(functions), room, count))
    wrong = rng.randrange(kept)
    functions[wrong] = _function(names[wrong], nouns[wrong], "1, len(values)")
    return Case(
        "\n\n".join(functions[:kept]),
        "One of these functions has a bug: its loop starts at index 1 with range(1, len(values)), so the"
        " first value is never added. Which function is it?",
        "The function with the bug is",
        (names[wrong],),
        f" {names[wrong]}.",
    )


_BUG_NOUNS = tuple(
    f"{what}_{where}"
    for what in ("boats", "lamps", "crates", "tolls", "fares", "tides", "nets", "repairs", "stamps", "ropes")
    for where in ("north", "south", "upper", "lower", "inner", "outer", "spring", "winter")
)


def _function(name: str, noun: str, span: str) -> str:
    return (
        f"def {name}(values: list[int]) -> int:\n"
        f'    """Sum of all {noun.replace("_", " ")} values of one day."""\n'
        f"    total = 0\n    for index in range({span}):\n        total += values[index]\n    return total\n"
    )


def back_reference(rng: Random, room: int, count: Count) -> Case:
    """A rule at the end refers to a limit that is stated at the beginning."""
    limit, section = str(rng.randint(200, 999)), rng.randint(3, 9)
    named = f"Rule {section}. At the lower mill at most {limit} barrels may stand in the yard."
    referring = f"For the upper mill, the limit that rule {section} sets for the lower mill holds too."
    parts = fill(paragraphs(rng), room - count(named) - count(referring), count)
    parts = scatter(parts, [named, referring], [rng.uniform(0.05, 0.2), 0.98])
    return Case(
        "\n\n".join(parts),
        f"How many barrels may stand at the upper mill? Rule {section} sets the limit for the lower mill.",
        "The number of barrels that may stand at the upper mill is",
        (limit,),
        f" {limit}.",
    )


def nested_xml(rng: Random, room: int, count: Count) -> Case:
    """The attribute of one box, four levels deep."""
    depots = fill(_depots(rng), room - 40, count)
    held = [
        (line.split('"')[1], line.split('"')[3])
        for depot in depots
        for line in depot.splitlines()
        if "<box " in line
    ]
    code, colour = held[rng.randrange(len(held))]
    return Case(
        "<store>\n" + "\n".join(depots) + "\n</store>",
        f"Which colour does the box with the code {code} have?",
        f"The box with the code {code} has the colour",
        (colour,),
        f" {colour}.",
    )


def _depots(rng: Random) -> Iterator[str]:
    codes = iter(rng.sample(range(1000, 10000), 2000))
    number = 0
    while True:
        number += 1
        lines = [f'<depot name="{rng.choice(_TOWNS)} {number}">']
        for shelf in range(1, 3):
            lines.append(f'  <shelf row="{shelf}">')
            for _ in range(3):
                colour = rng.choice(_COLOURS)
                box = f'<box code="B{next(codes)}" colour="{colour}">'
                lines.append(f"    {box}<weight>{rng.randint(2, 90)}</weight></box>")
            lines.append("  </shelf>")
        yield "\n".join([*lines, "</depot>"])


# ---- facts that share no word with their question

# The planted sentence, the question, and the beginning of the answer.
Fact = tuple[str, str, str]


def hidden(facts: Sequence[Fact]) -> Callable[[Random, int, Count], Case]:
    """One of `facts` at a random depth of prose."""

    def build(rng: Random, room: int, count: Count) -> Case:
        number, (told, question, lead) = str(rng.randint(1000, 9999)), rng.choice(facts)
        planted = told.format(number=number)
        parts = fill(paragraphs(rng), room - count(planted), count)
        return Case(
            "\n\n".join(scatter(parts, [planted], [rng.uniform(0.1, 0.9)])),
            question,
            lead,
            (number,),
            f" {number}.",
        )

    return build


OTHER_LANGUAGE = (
    (
        "Das Schließfach von Frau Adler im Bahnhof hat die Nummer {number}.",
        "One sentence is in German. Which number does the locker of Frau Adler have?",
        "The locker of Frau Adler has the number",
    ),
    (
        "Le numéro de la chambre de Madame Fournier est le {number}.",
        "One sentence is in French. What is the number of the room of Madame Fournier?",
        "The number of the room of Madame Fournier is",
    ),
    (
        "El barco del señor Ortega tiene el número {number}.",
        "One sentence is in Spanish. Which number does the boat of señor Ortega have?",
        "The boat of señor Ortega has the number",
    ),
)

# Sentence and question share only the most common words (a test checks it), so a scorer that compares words
# cannot find them; some words of the questions also occur in the filler prose.
OTHER_WORDS = (
    (
        "Anybody who is ill may ring the physician on extension {number}.",
        "At which phone number can a sick person call the doctor?",
        "A sick person can call the doctor at the phone number",
    ),
    (
        "Admission to the gallery costs {number} crowns.",
        "How much money do visitors pay to see the paintings?",
        "To see the paintings visitors pay",
    ),
    (
        "Staff who resign give {number} days of notice.",
        "How long before they quit must workers tell their company?",
        "Workers who quit must tell their company as long before as",
    ),
    (
        "The vessel left the yard in {number} for its maiden voyage.",
        "When did the ship first sail?",
        "The ship first sailed in",
    ),
    (
        "All parcels are stored in depot {number}.",
        "Where do they keep the packages? Say the building's number.",
        "They keep the packages in building",
    ),
    (
        "The automobile burned {number} litres on that journey.",
        "How much petrol did the car need for the trip?",
        "For the trip the car needed",
    ),
    (
        "The lecture hall has {number} seats.",
        "How many people can listen to a talk at once?",
        "The number of people who can listen to a talk at once is",
    ),
    (
        "Guests reach the wireless network with the code {number}.",
        "Which password do visitors type to be online?",
        "To be online visitors type the password",
    ),
    (
        "The landlord raised the monthly rent to {number} crowns.",
        "What do the tenants owe for their flat now?",
        "For their flat the tenants now owe",
    ),
    (
        "The infant weighed {number} grams when it was born.",
        "How heavy was the baby at birth?",
        "At birth the baby was as heavy as",
    ),
)

# ---- tasks that need the whole document

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
    """RULER's common words (CWE): ten words appear ten times as often as the others."""
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
    """RULER's frequent words (FWE): the three most frequent of zeta-distributed words. Dots are noise."""
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
    """RULER's variable tracking (VT): a chain of four assignments and a decoy chain, spread over prose."""
    names = rng.sample(_VARIABLES, 2 * (_HOPS + 1))
    wanted, other = names[: _HOPS + 1], names[_HOPS + 1 :]
    value, decoy = (str(v) for v in rng.sample(range(10_000, 100_000), 2))
    lines = [*_chain(wanted, value), *_chain(other, decoy)]
    depths = [depth for _ in range(2) for depth in sorted(rng.uniform(0.02, 0.98) for _ in wanted)]
    parts = fill(paragraphs(rng), room - sum(count(line) + 2 for line in lines), count)
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


def _words(rng: Random, number: int) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < number:
        made["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3)))] = None
    return list(made)


# ---- registry

TASKS: dict[str, Task] = {
    one.name: one
    for one in (
        Task("needle-10", "adversarial", needle(0.1)),
        Task("needle-50", "adversarial", needle(0.5)),
        Task("needle-90", "adversarial", needle(0.9)),
        Task("json-three", "adversarial", json_three),
        Task("planted-bug", "adversarial", planted_bug, answer_tokens=24),
        Task("back-reference", "adversarial", back_reference, answer_tokens=16),
        Task("other-language", "adversarial", hidden(OTHER_LANGUAGE), answer_tokens=16),
        Task("nested-xml", "adversarial", nested_xml, answer_tokens=16),
        Task("other-words", "own", hidden(OTHER_WORDS), answer_tokens=16),
        Task("multi-key", "ruler", multi_key, answer_tokens=16),
        Task("multi-value", "ruler", multi_value),
        Task("multi-query", "ruler", multi_query),
        Task("common-words", "ruler", common_words, everything=True),
        Task("frequent-words", "ruler", frequent_words, everything=True),
        Task("variable-tracking", "ruler", variable_tracking, everything=True),
    )
}


def task(name: str) -> Task:
    """The task with this name. Raises `RequestError` if there is none."""
    try:
        return TASKS[name]
    except KeyError:
        raise RequestError(f"There is no task called “{name}”.", f"Choose from {', '.join(TASKS)}.") from None
