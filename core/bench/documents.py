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

from core.bench import prose
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
            f"{next(prose.paragraphs(rng))}\n\n"
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
