"""Hand-labelled figures and names: answers about fourteen documents, and where each fact stands.

Documents (`documents/`), questions and labels (`labels.json`) are our own. An answer is the starter
model's, or was written by hand in the style of a large model: Markdown, lists, tables, rounded and
converted figures, sums, short forms of names, and planted errors. Labels were set by reading, without
knowledge of the rules of `core/origins`; none was set or corrected by running one. Half of the documents are
held out: rules are tuned on the others.

How a label was chosen:

- A fact stands in the document if a careful reader finds it there, in any notation of the same value:
  `£27k` is `£27,000`, `21:12` is `9.12 pm`, `11/03/2025` is `11 March 2025`, `十二基` is `12基`. Units belong
  to the figure.
- Rounded figures and converted units (`two years` for `24 months`) stand nowhere, and are not wrong.
- A result is computed if its sentence or line names both operands, and it agrees; else it stands nowhere.
- `wrong`: the answer states something that the document contradicts or does not mention. A wrong fact that
  occurs in the document, in another statement, cannot be marked.
- Single German names are labelled although rules may ignore them. Names in Japanese, words without capitals
  or digits, and ordinals of lists are not.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

FOLDER = Path(__file__).parent
Half = Literal["tuned", "held_out"]
Span = tuple[int, int]


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """A figure or name of an answer; offsets in characters, end-exclusive.

    `place`: one span of the document where it occurs, for `document` and `skipped`. `skipped`: in a passage
    that was not read for the answer, and in no other.
    """

    start: int
    end: int
    text: str
    kind: Literal["number", "date", "amount", "identifier", "quotation", "name"]
    stands: Literal["document", "question", "computed", "nowhere", "skipped"]
    wrong: bool
    place: Span | None


class LabelledAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """`skipped`: spans of the document that were not read; empty if everything was."""

    question: str
    by: Literal["starter", "hand"]
    skipped: tuple[Span, ...]
    answer: str
    labels: tuple[Label, ...]


class LabelledDocument(Struct, frozen=True, forbid_unknown_fields=True):
    document: str
    language: Literal["en", "de", "fr", "ja"]
    half: Half
    answers: tuple[LabelledAnswer, ...]

    def text(self) -> str:
        return (FOLDER / "documents" / self.document).read_text(encoding="utf-8")


def labelled(half: Half | Literal["all"] = "all") -> list[LabelledDocument]:
    """The documents of one half with their labelled answers, or all."""
    found = msgspec.json.decode((FOLDER / "labels.json").read_bytes(), type=list[LabelledDocument])
    return [each for each in found if half in ("all", each.half)]


def run(options: argparse.Namespace) -> int:
    """The command `origins`."""
    from tests.tuning.origins import measure

    return measure.run(options)
