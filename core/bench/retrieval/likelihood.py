"""`draftlight bench likelihood`: how likely the right answer is after sparse prefill, read in other ways.

Two questions, on the documents and questions of `bench retrieval`, whose right answers are quotations:

positions: are kept passages worth more where they stand, or closed up, as if nothing lay between them?
Scores and selection are the same; only the positions differ.

turns: a second question, whose answer the first reading skipped. Nothing more is read (`off`), what is newly
relevant is inserted where it stands (`insert`) or quoted before the question (`quote`); against a sparse
reading of the whole conversation from nothing (`fresh`). The first answer is its quotation. Passages stand at
true positions or are closed up, by choice; insertion is for true ones only.

Likelihoods are of the quotation's tokens, mean negative log-likelihood in nats. Half of the documents are
held out: what is chosen is chosen by the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from core.bench.environment import Environment
from core.bench.journal import Journal
from core.bench.pieces import BenchPiece, PieceProgress, conditions, measure, of_run
from core.bench.results_folder import write_results
from core.bench.retrieval.answers import nll, prompt_text, read
from core.bench.retrieval.names import LIKELIHOOD_PARTS
from core.bench.retrieval.questions import Document, Question, documents, questions
from core.bench.statistic import median
from core.errors import RequestError
from core.events import Attachment, Message
from core.settings import Settings, assign_all
from core.settings.prefill import Prefill

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.models.loader import LoadedModel
    from core.prefill.reading import PromptText

POSITIONS, TURNS = LIKELIHOOD_PARTS
WAYS = {POSITIONS: ("true", "closed up"), TURNS: ("off", "insert", "quote", "fresh")}
# A longer quotation is cut: what comes late in it follows from its beginning.
_MOST_ANSWER_TOKENS = 64


class Way(Struct, frozen=True):
    """One way to read: `nll` in nats a token; `read_tokens` in the last turn, the prompt's last included."""

    name: str
    nll: float
    read_tokens: int


class Asked(Struct, frozen=True):
    """One question, by its number among its document's; `after` is the question of the turn before, or −1."""

    part: str
    document: str
    number: int
    after: int
    kind: str
    held_out: bool
    tokens: int
    recall: float
    ways: tuple[Way, ...]

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.part, self.document, self.number, self.after


class LikelihoodResults(Struct, frozen=True):
    """All of one run of the bench."""

    bench: str
    environment: Environment
    model: str
    keep_pct: float
    missing: tuple[str, ...]
    asked: tuple[Asked, ...]
    progress: PieceProgress


class _Source(NamedTuple):
    """A document that is here, with its questions."""

    document: Document
    text: str
    asked: list[Question]


def run(options: argparse.Namespace) -> int:
    """Measure and write `asked.jsonl`, `results.json` and `report.md`."""
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.bench.environment import describe
    from core.models.loader import load

    every, missing = [], []
    for document in documents():
        if (text := document.text()) is None:
            missing.append(document.name)
        else:
            asked = [question for question in questions() if question.document == document.name]
            every.append(_Source(document, text, asked))
    if not every:
        raise RequestError(
            "None of the documents is here: the packages are of other versions.", "Run `make setup`."
        )
    loaded = load(options.model)
    chosen = [("prefill.mode", "on"), ("prefill.keep_pct", options.keep)]
    prefill = assign_all(Settings(), [*chosen, ("prefill.positions", options.positions)]).prefill
    environment = describe(blas, loaded.info.dtype)
    pieces: list[BenchPiece[Asked]] = []
    if POSITIONS in options.parts:
        pieces += _even([_positions(loaded, source, prefill) for source in every], options.questions)
    if TURNS in options.parts:
        pieces += _even([_turns(loaded, source, prefill) for source in every], options.conversations)
    held = conditions(environment, loaded.info.name, f"keep {options.keep:g}%", options.positions)
    journal = Journal(options.out / "asked.jsonl", held, Asked)
    progress = measure(journal, pieces, _told, quiet=options.quiet)
    asked_of_run = tuple(of_run(journal, pieces))
    results = LikelihoodResults(
        "likelihood", environment, loaded.info.name, options.keep, tuple(missing), asked_of_run, progress
    )
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    return progress.status(True)


def _even(of_documents: Sequence[Iterator[BenchPiece[Asked]]], most: int) -> list[BenchPiece[Asked]]:
    """One of each document after the other, round and round, so that a run stopped early covers all."""
    found: list[BenchPiece[Asked]] = []
    waiting = list(of_documents)
    while waiting and len(found) < most:
        for pieces in list(waiting):
            piece = next(pieces, None)
            if piece is None:
                waiting.remove(pieces)
            else:
                found.append(piece)
    return found[:most]


def _positions(loaded: LoadedModel, source: _Source, settings: Prefill) -> Iterator[BenchPiece[Asked]]:
    for number, question in enumerate(source.asked):
        yield BenchPiece(
            (POSITIONS, source.document.name, number, -1),
            lambda number=number, question=question: _asked(  # type: ignore[misc]
                loaded, source, number, -1, settings, _read_in_places(loaded, source, question, settings)
            ),
        )


def _turns(loaded: LoadedModel, source: _Source, settings: Prefill) -> Iterator[BenchPiece[Asked]]:
    """Pairs of questions of which the first one's reading skips all that answers the second."""
    for step in range(1, len(source.asked)):
        for after in range(len(source.asked)):
            number = (after + step) % len(source.asked)
            if _recall(loaded, source, source.asked[after], source.asked[number], settings) == 0.0:
                yield BenchPiece(
                    (TURNS, source.document.name, number, after),
                    lambda number=number, after=after: _asked(  # type: ignore[misc]
                        loaded,
                        *(source, number, after, settings),
                        _read_in_turns(loaded, source, source.asked[after], source.asked[number], settings),
                    ),
                )


def _asked(
    loaded: LoadedModel, source: _Source, number: int, after: int, settings: Prefill, ways: Iterable[Way]
) -> Asked:
    question = source.asked[number]
    return Asked(
        *(POSITIONS if after < 0 else TURNS, source.document.name, number, after, question.kind),
        *(source.document.held_out, len(_prompt(loaded, source, question).ids)),
        _recall(loaded, source, question, question, settings) or 0.0,
        tuple(ways),
    )


# ---- the two readings


def _read_in_places(
    loaded: LoadedModel, source: _Source, question: Question, settings: Prefill
) -> Iterator[Way]:
    """The same kept tokens, where they stand and closed up."""
    from core.kv.cached_sequence import CachedSequence
    from core.prefill.read import read_prompt

    text, answer = _prompt(loaded, source, question), _answer(loaded, source, question)
    settings = assign_all(Settings(prefill=settings), [("prefill.positions", "true")]).prefill
    sequence, _ = read(loaded, CachedSequence(loaded.new_cache), text, settings)
    kept = sequence.columns.places(0, sequence.columns.count)
    yield Way("true", nll(loaded, sequence, text.ids[-1], answer), len(kept) + 1)
    closed = [*(text.ids[at] for at in kept.tolist()), text.ids[-1]]
    sequence = CachedSequence(loaded.new_cache)
    for _ in read_prompt(loaded.model, sequence, closed, chunk_tokens=settings.chunk_tokens):
        pass
    yield Way("closed up", nll(loaded, sequence, closed[-1], answer), len(closed))


def _read_in_turns(
    loaded: LoadedModel, source: _Source, first: Question, second: Question, settings: Prefill
) -> Iterator[Way]:
    from core.kv.cached_sequence import CachedSequence

    before, _ = read(loaded, CachedSequence(loaded.new_cache), _prompt(loaded, source, first), settings)
    answer = _answer(loaded, source, second)
    text = _prompt(loaded, source, second, first)
    for name in WAYS[TURNS]:
        if name == "insert" and before.closed_up:
            continue
        fresh = name == "fresh"
        chosen = (
            settings if fresh else assign_all(Settings(prefill=settings), [("prefill.read_on", name)]).prefill
        )
        start = CachedSequence(loaded.new_cache) if fresh else before.fork(len(before.tokens))
        sequence, reading = read(loaded, start, text, chosen)
        tokens = reading.outcome.read_tokens + 1
        yield Way(name, nll(loaded, sequence, reading.ids[-1], answer), tokens)


# ---- prompts


def _prompt(
    loaded: LoadedModel, source: _Source, question: Question, first: Question | None = None
) -> PromptText:
    """The conversation up to `question`; `first` was asked and rightly answered before it."""
    attached = (Attachment(source.document.name, source.text),)
    if first is None:
        return prompt_text(loaded, (Message("user", question.question, attached),))
    return prompt_text(
        loaded,
        (
            Message("user", first.question, attached),
            Message("assistant", _quotation(source, first)),
            Message("user", question.question),
        ),
    )


def _quotation(source: _Source, question: Question) -> str:
    first, last = question.gold[0]
    return source.text[first:last].strip()


def _answer(loaded: LoadedModel, source: _Source, question: Question) -> list[int]:
    ids = loaded.tokenizer.encode(_quotation(source, question), add_special_tokens=False)
    return list(ids)[:_MOST_ANSWER_TOKENS]


def _recall(
    loaded: LoadedModel, source: _Source, asked: Question, wanted: Question, settings: Prefill
) -> float | None:
    """How much of what answers `wanted` a reading for `asked` keeps; None if there is nothing of it."""
    from core.prefill.scorers.lexical import lexical_scores, words_of
    from core.prefill.select import select

    text = _prompt(loaded, source, asked)
    parts = text.layout()
    passages = parts.passages(0, len(text.ids), settings)
    words = words_of(loaded.tokenizer.convert_ids_to_tokens(text.ids))
    scores = lexical_scores(words, parts.question, passages)
    first, last = wanted.gold[0]
    gold = (parts.source == 0) & (parts.first_char < last) & (parts.last_char > first)
    if not gold.any():
        return None
    chosen = select(scores, parts.protected | parts.question, passages, keep_pct=settings.keep_pct)
    kept = np.repeat(chosen.kept, chosen.ends - chosen.starts)
    return float(kept[gold[: len(kept)]].mean())


# ---- the report


def _told(asked: Asked) -> Iterable[str]:
    ways = "  ".join(f"{way.name} {way.nll:5.2f} ({way.read_tokens:,})" for way in asked.ways)
    yield f"{asked.part:<9} {asked.document:<22} {asked.kind:<11} {ways}"


def write_report(results: LikelihoodResults) -> str:
    """Likelihood and tokens of each way, and of each beside the last one."""
    lines = ["# bench likelihood", "", results.environment.line, "", *results.progress.lines]
    if results.missing:
        lines += [f"Left out, for their packages hold other texts: {', '.join(results.missing)}.", ""]
    lines += [
        f"{results.model}, keep {results.keep_pct:g}%. Negative log-likelihood of the right answer in nats"
        " a token, mean over questions; the difference is to the table's last way, mean and median.",
        "",
    ]
    for part in LIKELIHOOD_PARTS:
        of_part = [asked for asked in results.asked if asked.part == part]
        for held_out in (False, True, None):
            some = [asked for asked in of_part if held_out is None or asked.held_out == held_out]
            if some:
                side = {False: "shaped on", True: "held out", None: "all"}[held_out]
                lines += [f"## {part}, documents {side}: {len(some)} questions", "", *_table(part, some), ""]
    return "\n".join(lines)


def _table(part: str, some: Sequence[Asked]) -> list[str]:
    lines = [
        "| way | nats | difference | median | better in | tokens read | share |",
        "|---|---|---|---|---|---|---|",
    ]
    last = [asked.ways[-1] for asked in some]
    for name in dict.fromkeys(way.name for asked in some for way in asked.ways):
        ways = [way for asked in some for way in asked.ways if way.name == name]
        differences = [way.nll - other.nll for way, other in zip(ways, last)]
        better = sum(difference < 0 for difference in differences)
        tokens, others = (sum(way.read_tokens for way in of) for of in (ways, last))
        lines.append(
            f"| {name} | {_mean(way.nll for way in ways):.2f} | {_mean(differences):+.2f}"
            f" | {median(differences):+.2f} | {better} of {len(some)}"
            f" | {tokens / len(some):,.0f} | {tokens / others:.0%} |"
        )
    return lines


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
