"""`draftlight bench retrieval`: how often a scorer keeps the passage that a question is about.

Question: of what answers a question, how much is among the passages that sparse prefill would read? Scores
and selection are the product's own; nothing is read and nothing is answered, so a model matters only to
scorers that use it. Recall is over the gold passages' tokens; strict recall counts a question only if all of
them are kept. What is read whatever its score (the beginning, the end, the question) is no merit of a
scorer: a gold passage inside it is left out, and so is a question that has no other. Half of the documents
are held out: scorers are shaped on the others.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from core.bench.environment import Environment
from core.bench.journal import Journal
from core.bench.pieces import BenchPiece, PieceProgress, conditions, measure, of_run
from core.bench.results_folder import write_results
from core.bench.retrieval.questions import Document, Question, documents, questions
from core.bench.statistic import median
from core.errors import RequestError
from core.events import Attachment, Message
from core.settings import Settings

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.models.loader import LoadedModel

KEEPS = (10.0, 20.0, 30.0)
_SIDES = ("shaped on", "held out")


class Found(Struct, frozen=True):
    """One question by one scorer: `recall` at each of `KEEPS`; empty if the gold passages are always read."""

    document: str
    number: int
    scorer: str
    kind: str
    form: str
    held_out: bool
    tokens: int
    score_s: float
    recall: tuple[float, ...]

    @property
    def key(self) -> tuple[str, int, str]:
        return self.document, self.number, self.scorer


class RetrievalResults(Struct, frozen=True):
    """All of one run of the bench. `missing`: documents whose package holds another text."""

    bench: str
    environment: Environment
    model: str
    keeps: tuple[float, ...]
    missing: tuple[str, ...]
    found: tuple[Found, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `found.jsonl`, `results.json` and `report.md`."""
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.bench.environment import describe
    from core.models.loader import load

    texts = {
        document: document.text()
        for document in documents()
        if options.documents == ("all",) or document.name in options.documents
    }
    missing = tuple(document.name for document, text in texts.items() if text is None)
    if len(missing) == len(texts):
        raise RequestError(
            "None of the documents is here: the packages are of other versions.", "Run `make setup`."
        )
    loaded = load(options.model)
    environment = describe(blas, loaded.info.dtype)
    pieces = []
    for document, text in texts.items():
        asked = [question for question in questions() if question.document == document.name]
        for number, question in enumerate(asked):
            for scorer in options.scorers if text is not None else ():
                pieces.append(_piece(loaded, document, str(text), number, question, scorer))
    journal = Journal(options.out / "found.jsonl", conditions(environment, loaded.info.name), Found)
    progress = measure(journal, pieces, _told, quiet=options.quiet)
    found = tuple(of_run(journal, pieces))
    results = RetrievalResults("retrieval", environment, loaded.info.name, KEEPS, missing, found, progress)
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    return progress.status(True)


def _piece(
    loaded: LoadedModel, document: Document, text: str, number: int, question: Question, scorer: str
) -> BenchPiece[Found]:
    def find() -> Found:
        tokens, score_s, recall = _recall(loaded, document, text, question, scorer)
        return Found(
            *(document.name, number, scorer, question.kind, document.form, document.held_out),
            *(tokens, score_s, recall),
        )

    return BenchPiece((document.name, number, scorer), find)


def _recall(
    loaded: LoadedModel, document: Document, text: str, question: Question, scorer: str
) -> tuple[int, float, tuple[float, ...]]:
    """The prompt's tokens, the seconds that scoring took, and the recall at each of `KEEPS`."""
    from core.models.prompt import offsets, render
    from core.prefill.layout import layout
    from core.prefill.scorers.lexical import words_of
    from core.prefill.scorers.registry import SCORERS as SPECS
    from core.prefill.scorers.scorer import ScorerInputs, finished
    from core.prefill.select import must_keep, select

    settings = Settings().prefill
    prompt = render(
        loaded.tokenizer, (Message("user", question.question, (Attachment(document.name, text),)),)
    )
    parts = layout(prompt, offsets(loaded.tokenizer, prompt))
    gold = np.zeros(len(prompt.ids), dtype=np.bool_)
    for first, last in question.gold:
        gold |= (parts.source == 0) & (parts.first_char < last) & (parts.last_char > first)
    protected = parts.protected | parts.question
    started = time.perf_counter()
    passages = parts.passages(0, len(prompt.ids), settings)
    if scorer in SPECS:
        inputs = ScorerInputs(
            loaded,
            prompt.ids,
            parts,
            passages,
            lambda: words_of(loaded.tokenizer.convert_ids_to_tokens(prompt.ids)),
            settings,
        )
        scores = finished(SPECS[scorer].score(inputs)).scores
    else:
        scores = _unscored(scorer, len(passages), question.question)
    score_s = time.perf_counter() - started
    earned = gold & ~np.repeat(must_keep(protected, passages), passages.lengths)
    if not earned.any():
        return len(prompt.ids), score_s, ()
    recall = []
    for keep in KEEPS:
        chosen = select(scores, protected, passages, keep_pct=keep)
        kept = np.repeat(chosen.kept, chosen.ends - chosen.starts)
        recall.append(float(kept[earned].mean()))
    return len(prompt.ids), score_s, tuple(recall)


def _unscored(name: str, count: int, seed: str) -> np.ndarray[Any, Any]:
    """What a scorer has to beat: passages at random, or the nearest to the two ends."""
    if name == "random":
        rng = random.Random(seed)
        return np.array([rng.random() for _ in range(count)], np.float32)
    return np.asarray(np.abs(np.arange(count, dtype=np.float32) - count / 2))


def _told(found: Found) -> Iterable[str]:
    shares = "  ".join(f"{share:4.2f}" for share in found.recall) or "always read"
    yield f"{found.document:<22} {found.kind:<11} {found.scorer:<14} {shares}  {found.score_s:6.2f} s"


def write_report(results: RetrievalResults) -> str:
    """Recall by scorer, then of each scorer by kind of question and form of document."""
    keeps = " | ".join(f"{keep:g}%" for keep in results.keeps)
    lines = ["# bench retrieval", "", results.environment.line, "", *results.progress.lines]
    if results.missing:
        lines += [f"Left out, for their packages hold other texts: {', '.join(results.missing)}.", ""]
    lines += [f"Mean/strict recall of what answers a question, {results.model}.", ""]
    for side, name in enumerate(_SIDES):
        of_side = [found for found in results.found if found.held_out == bool(side) and found.recall]
        lines += [
            f"## Documents {name}",
            "",
            f"| scorer | questions | {keeps} | seconds |",
            "|---|---|---|---|---|---|",
        ]
        for scorer in _in_order(found.scorer for found in of_side):
            mine = [found for found in of_side if found.scorer == scorer]
            seconds = median(found.score_s for found in mine)
            lines.append(f"| {scorer} | {len(mine)} | {_shares(mine)} | {seconds:.2f} |")
        lines += ["", f"| scorer | of | questions | {keeps} |", "|---|---|---|---|---|---|"]
        for scorer in _in_order(found.scorer for found in of_side):
            mine = [found for found in of_side if found.scorer == scorer]
            for group in _in_order(group for found in mine for group in _groups(found)):
                some = [found for found in mine if group in _groups(found)]
                lines.append(f"| {scorer} | {group} | {len(some)} | {_shares(some)} |")
        lines.append("")
    return "\n".join(lines)


def _groups(found: Found) -> tuple[str, str]:
    return f"asked: {found.kind}", f"document: {found.form}"


def _shares(found: Sequence[Found]) -> str:
    columns = list(zip(*(one.recall for one in found)))
    return " | ".join(
        f"{sum(column) / len(column):.2f}/{sum(share > 0.999 for share in column) / len(column):.2f}"
        for column in columns
    )


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
