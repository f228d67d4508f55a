"""Golden files: what the product gave when they were written, compared line by line.

A golden file in `goldens/` has sections, each a title and lines. Ids, times and other figures of a run are
masked by the test that writes them. A changed golden needs its reason in the commit that changes it.

    make goldens      rewrites the files
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).with_name("goldens")
WRITES = "DRAFTLIGHT_WRITE_GOLDENS"
_TITLE = "## "


def read(name: str) -> dict[str, list[str]]:
    """The sections of the file `name`, by title; none if there is no file."""
    path = FOLDER / f"{name}.txt"
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        if line.startswith(_TITLE):
            lines = found.setdefault(line.removeprefix(_TITLE), [])
        else:
            lines.append(line)
    return found


def writes() -> bool:
    """Whether the files are written."""
    return bool(os.environ.get(WRITES))


def same(name: str, sections: Mapping[str, Sequence[str]]) -> bool:
    """Whether the file `name` has `sections`; it may have others. Always after `make goldens` wrote them."""
    known = read(name)
    if writes():
        known |= {title: list(lines) for title, lines in sections.items()}
        texts = ["\n".join((_TITLE + title, *lines)) for title, lines in sorted(known.items())]
        (FOLDER / f"{name}.txt").write_text("\n".join(texts) + "\n", "utf-8")
    return all(known.get(title) == list(lines) for title, lines in sections.items())


def compare(name: str, sections: Mapping[str, Sequence[str]]) -> None:
    """Asserts that the file `name` has `sections`."""
    if not same(name, sections):
        known = read(name)
        assert {title: known.get(title) for title in sections} == sections
