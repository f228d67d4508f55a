"""Documents for measurements of prefill, by kind and seed.

`code` and `manual` are Draftlight's source files and docstrings; they change with the version, so reports
name the commit. `story` is a bundled text of which the seed selects 5,500 to 7,700 tokens. `records` and
`minutes` are generated without end. A document is an iterator of text parts; callers cut it to tokens.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from core.errors import RequestError
from core.system.paths import resources_dir


def document(kind: str, seed: int) -> Iterator[str]:
    """Parts of a document, each with its line breaks. Raises `RequestError` for an unknown kind."""
    try:
        make = KINDS[kind]
    except KeyError:
        raise RequestError(
            f"Unknown kind of document “{kind}”.", f"Choose from {', '.join(KINDS)}."
        ) from None
    return make(Random(f"{kind} {seed}"))


def _code(rng: Random) -> Iterator[str]:
    return _from([path.read_text(encoding="utf-8") for path in _modules()], 0.7 * rng.random())


def _manual(rng: Random) -> Iterator[str]:
    return _from([text for path in _modules() if (text := _reference(path))], 0.5 * rng.random())


def _modules() -> list[Path]:
    root = Path(__file__).parent.parent
    return [
        p for p in sorted(root.rglob("*.py")) if p.name != "__init__.py" and root / "bench" not in p.parents
    ]


def _reference(path: Path) -> str:
    """The docstrings of a module as a reference page."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = [f"# {path.stem}", "", ast.get_docstring(tree) or ""]
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            lines += ["", f"## {node.name}", "", text]
    return "\n".join(lines)


def _story(rng: Random) -> Iterator[str]:
    text = (resources_dir() / "bench" / "story.txt").read_text(encoding="utf-8")
    parts = text.strip().split("\n\n")
    start = 0.05 * rng.random()
    return _from(parts[: round((0.75 + 0.25 * rng.random()) * len(parts))], start)


def _records(rng: Random) -> Iterator[str]:
    while True:
        record = {
            "id": rng.randint(10_000, 99_999),
            "berth": rng.choice(("north", "south", "outer", "inner")),
            "vessel": rng.choice(("ferry", "mail boat", "trawler", "lifeboat", "barge")),
            "arrived": f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
            "crew": rng.randint(1, 12),
            "cargo": {"kind": rng.choice(("fish", "timber", "mail", "none")), "tonnes": rng.randint(0, 90)},
        }
        yield json.dumps(record) + "\n"


def _minutes(rng: Random) -> Iterator[str]:
    people, number = ("Ada", "Bram", "Cleo", "Dirk", "Elin", "Frans"), 0
    while True:
        number += 1
        topic, other = rng.sample(_TOPICS, 2)
        chair, speaker, third = rng.sample(people, 3)
        yield (
            f"Item {number}: {topic}\n{chair} opened the item. {speaker} reported that {rng.choice(_NEWS)}"
            f" {third} asked how this would touch {other}. {speaker} said that it would not before"
            f" {rng.choice(_MONTHS)}. Decided: {chair} and {third} look into {topic} and report in"
            f" {rng.choice(_MONTHS)}. In favour {rng.randint(3, 6)}, against {rng.randint(0, 2)}.\n"
            f"{next(paragraphs(rng))}\n\n"
        )


_TOPICS = (
    *("the crane on the north quay", "the winter timetable", "the price of ice", "the school trip"),
    *("the leaking roof of the market hall", "the dredging of the channel", "the new lifeboat"),
    *("the parking of trailers", "the lamp on the outer marker", "the summer fair", "the water meter"),
)
_NEWS = (
    *("two offers had come in and the cheaper one was late.", "the work had been done but not yet paid."),
    *("nothing had changed since the last meeting.", "the office had written twice without an answer."),
    *("the old part had broken again and a new one was on its way.", "the money would last until autumn."),
)
_MONTHS = ("January", "March", "April", "June", "September", "October", "November")

KINDS: dict[str, Callable[[Random], Iterator[str]]] = {
    "code": _code,
    "manual": _manual,
    "story": _story,
    "records": _records,
    "minutes": _minutes,
}


def _from(parts: list[str], start: float) -> Iterator[str]:
    """The parts after the fraction `start`. The text is not repeated, because then it could be drafted."""
    for part in parts[int(start * len(parts)) :]:
        yield part.rstrip() + "\n\n"


# ---- filler prose

_PEOPLE = (
    *("the harbour master", "the baker", "the ferry captain", "the schoolteacher", "the old carpenter"),
    *("the postwoman", "the night watchman", "the doctor", "the apprentice", "the librarian", "the cook"),
    *("the clockmaker", "the surveyor", "the gardener", "the lighthouse keeper", "the choir leader"),
)
_PLACES = (
    *("the north quay", "the market hall", "the upper road", "the boathouse", "the old customs shed"),
    *("the chapel steps", "the lower mill", "the fish dock", "the school yard", "the tram stop"),
    *("the rope walk", "the salt store", "the town bridge", "the reading room", "the orchard"),
)
_THINGS = (
    *("a crate of lemons", "a coil of rope", "two tins of paint", "the repaired lantern", "a new ladder"),
    *("the missing sequence", "a sack of flour", "three folding chairs", "a barrel of nails", "an old map"),
    *("the brass bell", "a bundle of sails", "the spare oars", "a box of candles", "the winter timetable"),
)
_DEEDS = (
    *("brought {thing} to {place}", "looked for {thing} near {place}", "left {thing} behind {place}"),
    *(
        "sold {thing} at {place}",
        "asked whether {thing} still stood by {place}",
        "painted {thing} outside {place}",
    ),
    *("traded {thing} for bread at {place}", "carried {thing} from {place} before breakfast"),
    *("promised to return {thing} to {place}", "found {thing} under a tarpaulin at {place}"),
)
_TIMES = (
    *("in the morning", "before the tide turned", "after supper", "on the first dry day of the week"),
    *("while the rain held off", "at the end of the shift", "shortly before dusk", "when the bell had rung"),
)
_REMARKS = (
    *("Nobody thought it strange", "It took longer than it should have", "The weather stayed grey"),
    *("A few people stopped to watch", "There was talk of it for a day or two", "The gulls were loud"),
    *("It was the third time that month", "Somebody laughed and somebody else did not"),
    *("The work was done before noon", "A dog slept through all of it", "The wind came round to the west"),
)
_REASONS = (
    *("because the cart had lost a wheel", "since the shop was closed", "because the letter had said so"),
    *("although it was not yet paid for", "so that the children could see it", "in spite of the cold"),
    *("because the key did not fit", "as had been agreed in spring", "though no one had asked for it"),
)


def paragraphs(rng: Random) -> Iterator[str]:
    """Endless paragraphs of three to six sentences about a harbour town, equal for equal seeds.

    They vary enough that a scorer cannot recognise an inserted sentence by its style.
    """
    while True:
        yield " ".join(_sentence(rng) for _ in range(rng.randint(3, 6)))


def _sentence(rng: Random) -> str:
    def pick(words: tuple[str, ...]) -> str:
        return words[rng.randrange(len(words))]

    if rng.random() < 0.25:
        return f"{pick(_REMARKS)}, and {pick(_PEOPLE)} went back to {pick(_PLACES)}."
    deed = pick(_DEEDS).format(thing=pick(_THINGS), place=pick(_PLACES))
    who, when = pick(_PEOPLE), pick(_TIMES)
    if rng.random() < 0.5:
        return f"{when.capitalize()} {who} {deed}, {pick(_REASONS)}."
    return f"{who.capitalize()} {deed} {when}."
