"""Kinds of PDF files: which of the project's 32 public fixtures are read as their pages show them.

`pdf_kinds.json` names each fixture and what is on its pages, in the order of reading; it was written by
looking at the pages. White space is not compared. The files are not part of the project: `make readers` finds
those that lie in the folders it is given, such as clones of the repositories, and skips the others.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

_LIST = Path(__file__).with_name("pdf_kinds.json")


class Fixture(Struct, rename={"in_order": "in order", "never": "not"}):
    """`in_order` are phrases in the order of reading, `never` phrases that no page shows."""

    kind: str
    repository: str
    name: str
    in_order: list[str]
    never: list[str] = []

    def is_read(self, text: str) -> bool:
        """Whether a text has the phrases in their order."""
        text, place = squeezed(text), 0
        for phrase in map(squeezed, self.in_order):
            place = text.find(phrase, place)
            if place < 0:
                return False
            place += len(phrase)
        return not any(squeezed(phrase) in text for phrase in self.never)


def squeezed(text: str) -> str:
    """`text` without white space, marks of table cells and ways to write the same character."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def fixtures() -> list[Fixture]:
    """All of them."""
    return msgspec.convert(json.loads(_LIST.read_text("utf-8")), list[Fixture])


def found(folders: Iterable[Path]) -> dict[str, Path]:
    """The files of the fixtures in `folders`, by name."""
    wanted = {each.name for each in fixtures()}
    return {path.name: path for folder in folders for path in folder.rglob("*.pdf") if path.name in wanted}


def right(files: dict[str, Path], read: Callable[[Path], str]) -> list[tuple[Fixture, bool]]:
    """Each fixture that is there, and whether `read` gives what its pages show."""
    return [(each, each.is_read(read(files[each.name]))) for each in fixtures() if each.name in files]
