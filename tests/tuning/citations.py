"""Whether answers' sentences are cited where a document supports them, and only there.

`citations.json` has documents, each with sentences that paraphrase it and the beginnings of the passages that
support them, and sentences that it does not support: with changed figures, names or meaning, on its subject,
or remarks of an assistant. Half of the documents is for choosing thresholds, the other half for reporting.
Each sentence is searched for in its own document, in its own document inside a long one, and in the other
documents of its half, none of which supports it. A citation is correct if it holds the beginning of the
passage.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from core.answer_format import AnswerFormat
from core.bench.harness import Environment, describe, publish, table
from core.bench.retrieval import documents as long_documents

if TYPE_CHECKING:
    from core.encoder.store import Embedder
    from core.events import Citation
    from core.prefill.citations import Search

_SET = Path(__file__).with_name("citations.json")
_PLACES = ("its own document", "inside a long document", "other documents")


class Judged(Struct, frozen=True):
    """One sentence in one place: whether a support exists, and whether it was cited, and correctly."""

    half: str
    document: str
    place: str
    sentence: str
    supported: bool
    cited: bool
    correct: bool
    by_words: bool


class CitationsResults(Struct, frozen=True):
    """The content of `results.json`."""

    bench: str
    environment: Environment
    judged: tuple[Judged, ...]


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`."""
    from core.models.runtime import prepare

    environment = describe(prepare(), "float32")
    from core.encoder.store import Embedder

    halves = ("tuning", "held out")
    found = [each for half in halves for each in judged(half, len(_PLACES), (Embedder(), None))]
    results = CitationsResults("citations", environment, tuple(found))
    publish(options.out, results, write_report(results))
    return 0


def judged(half: str, places: int, embedders: Sequence[Embedder | None]) -> list[Judged]:
    """The sentences of a half in the first `places` places, with each of `embedders` (None: by words)."""
    given: list[dict[str, Any]] = [each for each in json.loads(_SET.read_text()) if each["half"] == half]
    long = next(text for document in long_documents() if (text := document.text()) is not None)
    middle = long.find("\n\n", len(long) // 2)
    found = []
    for embedder in embedders:
        for each in given:
            others = [other["text"] for other in given if other is not each]
            inside = f"{long[:middle]}\n\n{each['text']}{long[middle:]}"
            for place, texts in zip(_PLACES[:places], ([each["text"]], [inside], others)):
                sentences = [*each["supported"], *((sentence, "") for sentence in each["unsupported"])]
                for (sentence, gold), text in zip(
                    sentences, _cited([s for s, _ in sentences], texts, embedder)
                ):
                    supported = bool(gold) and place != _PLACES[2]
                    found.append(
                        Judged(
                            *(each["half"], each["name"], place, sentence, supported, text is not None),
                            *(supported and text is not None and gold in text, embedder is None),
                        )
                    )
    return found


def _cited(sentences: list[str], texts: list[str], embedder: Any) -> list[str | None]:
    """The text that is cited for each sentence; None where none is."""
    from core.prefill.citations import Document, search

    documents = {number: Document(text, np.ones(len(text), bool)) for number, text in enumerate(texts)}
    answer = "\n\n".join(sentences)
    ends = np.cumsum([len(sentence) + 2 for sentence in sentences]) - 2
    by_end = {each.end: each for each in found_by(search(answer, AnswerFormat(), documents, embedder))}
    assert set(by_end) <= set(ends.tolist())
    found = (by_end.get(end) for end in ends.tolist())
    return [texts[one.source][one.first_char : one.last_char] if one else None for one in found]


def found_by(search: Search) -> tuple[Citation, ...]:
    """The citations that a search returns."""
    while True:
        try:
            next(search)
        except StopIteration as end:
            citations: tuple[Citation, ...] = end.value
            return citations


def figures(some: list[Judged]) -> tuple[int, int, int, int]:
    """Sentences with a support, cited ones, correctly cited ones, and sentences without a support."""
    supported = sum(each.supported for each in some)
    return supported, sum(e.cited for e in some), sum(e.correct for e in some), len(some) - supported


def write_report(results: CitationsResults) -> str:
    """Precision and recall by half and place, and what was missed or wrong."""
    groups: dict[tuple[str, str, bool], list[Judged]] = {}
    for each in results.judged:
        groups.setdefault((each.half, each.place, each.by_words), []).append(each)
    rows = []
    for (half, place, by_words), some in groups.items():
        supported, cited, correct, unsupported = figures(some)
        precision = f"{correct / cited:.1%}" if cited else "–"
        recall = f"{correct / supported:.1%}" if supported else "–"
        how = "words" if by_words else "words and vectors"
        counts = f"{supported} | {unsupported} | {cited} | {correct} | {precision} | {recall}"
        rows.append(f"{half} | {how} | {place} | {counts}")
    lines = ["# Citations", "", results.environment.line, ""]
    head = "half | decided by | searched in | supported | unsupported | cited | correct | precision | recall"
    lines += [*table(head, rows), ""]
    for each in results.judged:
        if not each.by_words and each.half == "tuning" and each.correct != each.supported | each.cited:
            lines.append(f"- {each.place}: {'wrong' if each.cited else 'missed'}: {each.sentence}")
    return "\n".join(lines) + "\n"
