"""Structured documents as in the SpecPrefill paper: JSON records, code with a bug, a back-reference, nested
XML.
Documents and questions are our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from core.bench import prose
from core.bench.quality.tasks.case import Case, Count, fill, scatter

_RECORDS = 80
_TOWNS = ("Ashby", "Brill", "Corley", "Dunmow", "Elsham", "Farley", "Gosford", "Hexley", "Ilkton", "Jarrow")
_STATES = ("open", "closed", "idle", "broken")
_COLOURS = ("crimson", "turquoise", "ochre", "lavender", "olive", "scarlet", "beige", "teal")


def json_three(rng: Random, room: int, count: Count) -> Case:
    """Three values from an array of 80 records (fewer only where `room` is too small for them)."""
    ids = rng.sample(range(100, 1000), _RECORDS)
    litres = rng.sample(range(1000, 10000), _RECORDS)
    records = [
        json.dumps({"id": f"P{number}", "pump": rng.choice(_STATES), "litres": held}, separators=(",", ":"))
        for number, held in zip(ids, litres)
    ]
    kept = len(fill(iter(records), room, count))
    asked = sorted(rng.sample(range(kept), 3))
    left = room - sum(count(record) + 2 for record in records[:kept])
    parts = fill(prose.paragraphs(rng), left, count) if kept == _RECORDS else []
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
    """A module of like functions, one of which leaves out the first value."""
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
    """The end refers to a limit that only the beginning names."""
    limit, section = str(rng.randint(200, 999)), rng.randint(3, 9)
    named = f"Rule {section}. At the lower mill at most {limit} barrels may stand in the yard."
    referring = f"For the upper mill, the limit that rule {section} sets for the lower mill holds too."
    parts = fill(prose.paragraphs(rng), room - count(named) - count(referring), count)
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
