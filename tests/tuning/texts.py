"""Documents by kind and seed, for `likelihood`, and the names of its readers without a score.

`code` and `manual` are Draftlight's source files and docstrings; they change with the version. `story` is a
bundled text of which the seed selects 5,500 to 7,700 tokens. `records` and `minutes` are generated without
end.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from core.bench.cases import minutes
from core.system.paths import resources_dir

SCORELESS = ("random", "head-and-tail", "end")


def text_of(kind: str, seed: int) -> Iterator[str]:
    """Parts of a document, each with its line breaks."""
    return KINDS[kind](Random(f"{kind} {seed}"))


def _code(rng: Random) -> Iterator[str]:
    return _from([path.read_text(encoding="utf-8") for path in _modules()], 0.7 * rng.random())


def _manual(rng: Random) -> Iterator[str]:
    return _from([text for path in _modules() if (text := _reference(path))], 0.5 * rng.random())


def _modules() -> list[Path]:
    root = Path(__file__).parents[2] / "core"
    return [path for path in sorted(root.rglob("*.py")) if path.name != "__init__.py"]


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


KINDS: dict[str, Callable[[Random], Iterator[str]]] = {
    "code": _code,
    "manual": _manual,
    "story": _story,
    "records": _records,
    "minutes": minutes,
}


def _from(parts: list[str], start: float) -> Iterator[str]:
    """The parts after the fraction `start`. The text is not repeated, because then it could be drafted."""
    for part in parts[int(start * len(parts)) :]:
        yield part.rstrip() + "\n\n"
