"""Whether the sources shown for an answer are the passages that it quotes.

Uses the documents and questions of `bench retrieval`, with the gold passage as the answer and the document
read completely: is at least half of the passage inside the first source, or the first two? And how often does
the same answer get sources in another document, which does not contain it? No forward pass is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from core.bench.retrieval import BenchDocument, Question, documents, questions
from core.bench.runner import Bench, BenchPiece, describe, run_bench, table
from core.errors import RequestError
from core.events import Attachment, Message, Passage
from core.settings import Settings

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.models.loader import LoadedModel


class Sourced(Struct, frozen=True):
    """One quotation: whether the first source or the first two contain it, and another document's sources."""

    document: str
    number: int
    kind: str
    held_out: bool
    first: bool
    first_two: bool
    claimed_by_another: bool

    @property
    def key(self) -> tuple[str, int]:
        return self.document, self.number


def run(options: argparse.Namespace) -> int:
    """Measure and write `sources.jsonl` and `sources.md`."""
    from core.models.runtime import prepare

    blas = prepare()
    from core.models.loader import load

    texts = {document: document.text() for document in documents()}
    present = [(document, text) for document, text in texts.items() if text is not None]
    if len(present) < 2:
        raise RequestError(
            "None of the documents is installed: the packages have other versions.", "Run `make setup`."
        )
    loaded = load(options.model)
    pieces = [
        BenchPiece(
            (document.name, number), partial(_sourced, loaded, (document, text), number, question, another)
        )
        for (document, text), another in zip(present, (*present[1:], present[0]))
        for number, question in enumerate(one for one in questions() if one.document == document.name)
    ]
    title = f"Sources of an answer, {loaded.info.name}"
    environment = describe(blas, loaded.info.dtype)
    bench = Bench("sources", title, environment, (loaded.info.name,), Sourced, options.out)
    return run_bench(bench, pieces, lambda sourced: "", report, quiet=options.quiet)[1].status(True)


def _sourced(
    loaded: LoadedModel,
    of: tuple[BenchDocument, str],
    number: int,
    question: Question,
    another: tuple[BenchDocument, str],
) -> Sourced:
    document, text = of
    first, last = question.gold[0]
    answer = loaded.tokenizer.encode(text[first:last].strip(), add_special_tokens=False)
    found = _sources(loaded, document, text, question, answer)
    return Sourced(
        document.name,
        number,
        question.kind,
        document.held_out,
        _has(found[:1], first, last),
        _has(found[:2], first, last),
        bool(_sources(loaded, *another, question, answer)),
    )


def _sources(
    loaded: LoadedModel, document: BenchDocument, text: str, question: Question, answer: Sequence[int]
) -> tuple[Passage, ...]:
    from core.prefill.layout import layout
    from core.prefill.sources import sources
    from core.prefill.words import words_of
    from core.prompt import offsets, render

    prompt = render(
        loaded.tokenizer, (Message("user", question.question, (Attachment(document.name, text),)),)
    )
    parts = layout(prompt, offsets(loaded.tokenizer, prompt))
    words = words_of(loaded.tokenizer.convert_ids_to_tokens(prompt.ids))
    seen = np.arange(len(prompt.ids), dtype=np.int32)
    return sources(loaded, parts, words, seen, answer, Settings().prefill)


def _has(found: Sequence[Passage], first: int, last: int) -> bool:
    inside = sum(max(0, min(one.last_char, last) - max(one.first_char, first)) for one in found)
    return 2 * inside >= last - first


def report(sourced: Sequence[Sourced]) -> list[str]:
    """Shares by side and by kind of question."""
    lines = [
        "Share of quotations of which half or more is in the first source, or in the first two, and share"
        " with sources in another document.",
        "",
    ]
    sides = {"documents shaped on": False, "documents held out": True}
    groups = [(name, [s for s in sourced if s.held_out == side]) for name, side in sides.items()]
    kinds = list(dict.fromkeys(one.kind for one in sourced))
    groups += [(f"asked: {kind}", [s for s in sourced if s.kind == kind]) for kind in kinds]
    rows = (
        f"{name} | {len(some)} | {sum(s.first for s in some) / len(some):.0%}"
        f" | {sum(s.first_two for s in some) / len(some):.0%}"
        f" | {sum(s.claimed_by_another for s in some) / len(some):.0%}"
        for name, some in groups
        if some
    )
    return [*lines, *table("quotations of | number | first | first two | in another", rows)]
