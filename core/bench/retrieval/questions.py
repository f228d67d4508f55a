"""Scorers, documents and questions of `bench retrieval`.

The documents are manuals, licences, code, JSON, tables, rules and prose in five languages.

Most documents are parts of files of the locked packages: these are read where they are installed and
identified by their hash, and only the questions are kept here. No package holds prose, or text in other
languages than English, so those documents are our own (`resources/bench`). A package of another version may
hold another text: its document is then left out, and the report names it.
"""

from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from core.settings.prefill import SCORERS

# Every scorer has to find more than these.
BASELINES = ("random", "head-and-tail")
# `bench quality` measures the scorer with a draft model, because it loads one.
MEASURED = (*BASELINES, *(name for name in SCORERS if name != "draft-model"))

_OURS = Path(__file__).resolve().parents[3] / "resources" / "bench"
T = TypeVar("T")
QuestionKind = Literal["verbatim", "paraphrase", "code", "two places", "aggregate", "beginning", "end"]
Language = Literal["en", "de", "fr", "es", "zh"]


class Document(Struct, frozen=True):
    """Characters `start` to `end` (exclusive) of the only file that matches the pattern `file`.

    The pattern is relative to the installed packages or to `resources/bench`. Settings are tuned on documents
    that are not `held_out`.
    """

    name: str
    file: str
    form: str
    language: Language
    start: int
    end: int
    sha256: str
    held_out: bool

    def text(self) -> str | None:
        """The document's text, or None if its file is missing or has other contents."""
        folders = (Path(sysconfig.get_paths()["purelib"]), _OURS)
        files = [file for folder in folders for file in folder.glob(self.file)]
        if len(files) != 1:
            return None
        found = files[0].read_text("utf-8")[self.start : self.end]
        return found if hashlib.sha256(found.encode()).hexdigest() == self.sha256 else None


class Question(Struct, frozen=True):
    """A question about a document.

    `gold`: the character ranges of the document (end-exclusive) that answer it. `answer`: a short right
    answer, or None if the question needs a list or several facts.
    """

    document: str
    kind: QuestionKind
    question: str
    gold: tuple[tuple[int, int], ...]
    answer: str | None = None


def documents() -> list[Document]:
    """All documents of the retrieval set."""
    return _lines("documents.jsonl", Document)


def questions() -> list[Question]:
    """All questions, grouped by document."""
    return _lines("questions.jsonl", Question)


def _lines(name: str, kind: type[T]) -> list[T]:
    return [
        msgspec.json.decode(line, type=kind)
        for line in (_OURS / "retrieval" / name).read_bytes().splitlines()
    ]
