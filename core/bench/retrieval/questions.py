"""Questions about documents that come with the locked packages: manuals, licences, code, JSON, tables.

Only the questions are ours, so only they are kept; documents are read where they are installed. A document is
a part of a package's file, known by its hash; what answers a question is known by its place in that part. A
package of another version may hold another text: then the document is left out, and the report says so.
"""

from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

_FOLDER = Path(__file__).resolve().parents[3] / "resources" / "bench" / "retrieval"
T = TypeVar("T")
QuestionKind = Literal["verbatim", "paraphrase", "code", "two places", "aggregate", "beginning", "end"]


class Document(Struct, frozen=True):
    """Characters `start` to `end` of the one file that the pattern `file` finds among the packages.

    `held_out`: nothing is chosen by looking at it.
    """

    name: str
    file: str
    form: str
    start: int
    end: int
    sha256: str
    held_out: bool

    def text(self) -> str | None:
        """None if it is not there, or not the same."""
        files = list(Path(sysconfig.get_paths()["purelib"]).glob(self.file))
        if len(files) != 1:
            return None
        found = files[0].read_text("utf-8")[self.start : self.end]
        return found if hashlib.sha256(found.encode()).hexdigest() == self.sha256 else None


class Question(Struct, frozen=True):
    """`gold` are the places that answer it: first and last character of the text, end-exclusive."""

    document: str
    kind: QuestionKind
    question: str
    gold: tuple[tuple[int, int], ...]


def documents() -> list[Document]:
    """All that there are questions about."""
    return _lines("documents.jsonl", Document)


def questions() -> list[Question]:
    """In the order of their documents."""
    return _lines("questions.jsonl", Question)


def _lines(name: str, kind: type[T]) -> list[T]:
    return [msgspec.json.decode(line, type=kind) for line in (_FOLDER / name).read_bytes().splitlines()]
