"""`draftlight bench retrieval`: how often a scorer keeps the passage that answers a question.

Scores and selection are the product's own, but nothing is read and nothing is answered, so only scorers that
run the model depend on it. Recall is the kept share of the gold passages' tokens; strict recall counts the
questions whose gold passages are kept completely. Tokens that are read whatever their score (the beginning,
the end, the question) say nothing about a scorer: gold passages among them don't count, and neither does a
question without others. Half of the documents are held out; settings are tuned on the other half.

With `--answers N`, the bench also appends the right answers to N prompts and measures the mean
log-likelihood of their tokens after sparse prefill, after dense prefill and without the document.

The documents are manuals, licences, code, JSON, tables, rules and prose in five languages. Most are parts of
files of the locked packages: these are read where they are installed and identified by their hash, and only
the questions are kept here. No package holds prose, or text in other languages than English, so those
documents are our own (`resources/bench`). A package of another version may hold another text: its document is
then left out, and the report names it.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sysconfig
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from core.bench.cases import RETRIEVAL_BASELINES
from core.bench.harness import (
    BenchPiece,
    Environment,
    Journal,
    PieceProgress,
    conditions,
    describe,
    measure,
    median,
    publish,
    table,
)
from core.errors import RequestError
from core.events import Attachment, Message
from core.settings import Settings, assign_all, parse_all
from core.settings.prefill import Prefill

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.encoder.store import Embedder
    from core.kv.cached_sequence import CachedSequence
    from core.models.loader import LoadedModel
    from core.prefill.layout import Layout
    from core.prefill.reading import PromptText, Reading
    from core.prefill.scorers.lexical import Words


# ---- documents and questions

_OURS = Path(__file__).resolve().parents[2] / "resources" / "bench"
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


Array = np.ndarray[Any, Any]
# Every other scorer is compared with this one.
_REFERENCE = "lexical"
_TOLERANCE = 0.02


class Found(Struct, frozen=True):
    """One question with one scorer.

    `recall`: one value for each keep percentage; empty if the gold passages are read whatever their score.
    `without`: why a part of the scorer was not used, empty if all of it was.
    """

    document: str
    number: int
    scorer: str
    kind: str
    form: str
    language: str
    held_out: bool
    tokens: int
    score_s: float
    recall: tuple[float, ...]
    without: str

    @property
    def key(self) -> tuple[str, int, str]:
        return self.document, self.number, self.scorer


class RetrievalResults(Struct, frozen=True):
    """Results of one run. `missing`: documents whose package is absent or holds another text."""

    bench: str
    environment: Environment
    model: str
    keeps: tuple[float, ...]
    settings: tuple[str, ...]
    missing: tuple[str, ...]
    found: tuple[Found, ...]
    answers: tuple[Answered, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure; write `found.jsonl`, `answers.jsonl`, `results.json` and `report.md`."""
    from core.models.runtime import prepare

    # Before anything is loaded. Raises `SettingError`.
    settings = parse_all(Settings(), [tuple(text.split("=", 1)) for text in options.set]).prefill
    blas = prepare()
    from core.encoder.store import Embedder, VectorStore
    from core.models.loader import load

    texts = {
        document: document.text()
        for document in documents()
        if options.documents == ("all",) or document.name in options.documents
    }
    missing = tuple(document.name for document, text in texts.items() if text is None)
    present = [(document, text) for document, text in texts.items() if text is not None]
    if not present:
        raise RequestError(
            "None of the documents is installed: the packages have other versions.", "Run `make setup`."
        )
    loaded = load(options.model)
    environment = describe(blas, loaded.info.dtype)
    of_documents = {
        name: [question for question in questions() if question.document == name]
        for name in (document.name for document, _ in present)
    }
    label = conditions(environment, loaded.info.name, options.keep, *sorted(options.set))
    # Vectors of a document are computed once, and not put into the app's cache.
    embedder = Embedder(VectorStore(options.out / "vectors"))
    pieces = list(_pieces(loaded, embedder, present, of_documents, options.scorers, settings, options.keep))
    journal = Journal(options.out / "found.jsonl", label, Found)
    found, progress = measure(journal, pieces, _described, quiet=options.quiet)
    answers: tuple[Answered, ...] = ()
    if options.answers and progress.whole:
        of_answers = answer_pieces(
            loaded, embedder, present, of_documents, settings, options.keep, options.answers
        )
        answer_journal = Journal(options.out / "answers.jsonl", label, Answered)
        answers, second = measure(answer_journal, of_answers, describe_answered, quiet=options.quiet)
        progress = PieceProgress(progress.done + second.done, progress.total + second.total)
    results = RetrievalResults(
        *("retrieval", environment, loaded.info.name, options.keep, tuple(options.set), missing),
        *(found, answers, progress),
    )
    publish(options.out, results, write_report(results))
    return progress.status(True)


# ---- measuring


class _Prompt(NamedTuple):
    """A rendered question about a document, with its terms. `gold` (bool, one a token): what answers it."""

    ids: list[int]
    layout: Layout
    words: Words
    gold: Array


def _pieces(
    loaded: LoadedModel,
    embedder: Embedder,
    present: Sequence[tuple[Document, str]],
    of_documents: dict[str, list[Question]],
    scorers: Sequence[str],
    settings: Prefill,
    keeps: Sequence[float],
) -> Iterator[BenchPiece[Found]]:
    @lru_cache(maxsize=1)
    def prompt(at: int, number: int) -> _Prompt:
        """All scorers of a question share its prompt."""
        document, text = present[at]
        return _rendered(loaded, document, text, of_documents[document.name][number])

    def find(at: int, number: int, scorer: str) -> Found:
        document = present[at][0]
        question = of_documents[document.name][number]
        return Found(
            *(document.name, number, scorer, question.kind, document.form, str(document.language)),
            document.held_out,
            *_recall(prompt(at, number), question.question, scorer, loaded, embedder, settings, keeps),
        )

    for at, (document, _) in enumerate(present):
        for number in range(len(of_documents[document.name])):
            for scorer in scorers:
                yield BenchPiece((document.name, number, scorer), partial(find, at, number, scorer))


def _rendered(loaded: LoadedModel, document: Document, text: str, question: Question) -> _Prompt:
    from core.models.prompt import offsets, render
    from core.prefill.layout import layout
    from core.prefill.scorers.lexical import words_of

    prompt = render(
        loaded.tokenizer, (Message("user", question.question, (Attachment(document.name, text),)),)
    )
    parts = layout(prompt, offsets(loaded.tokenizer, prompt))
    gold = np.zeros(len(prompt.ids), dtype=np.bool_)
    for first, last in question.gold:
        gold |= (parts.source == 0) & (parts.first_char < last) & (parts.last_char > first)
    words = words_of(loaded.tokenizer.convert_ids_to_tokens(prompt.ids))
    return _Prompt(list(prompt.ids), parts, words, gold)


def _recall(
    prompt: _Prompt,
    seed: str,
    scorer: str,
    loaded: LoadedModel,
    embedder: Embedder,
    settings: Prefill,
    keeps: Sequence[float],
) -> tuple[int, float, tuple[float, ...], str]:
    """The last four fields of `Found`."""
    from core.prefill.plan import must_keep, select
    from core.prefill.scorers import SCORERS as SPECS
    from core.prefill.scorers.scorer import ScorerInputs, finished

    layout, tokens = prompt.layout, len(prompt.ids)
    always_read = layout.always_read
    passages = layout.passages(0, tokens, settings)
    without = ""
    started = time.perf_counter()
    if scorer in SPECS:
        inputs = ScorerInputs(
            *(loaded, prompt.ids, layout, passages, lambda: prompt.words, settings), embedder=embedder
        )
        scored = finished(SPECS[scorer].score(inputs))
        scores, without = scored.scores, scored.without
    else:
        scores = _baseline(scorer, len(passages), seed)
    score_s = time.perf_counter() - started
    earned = prompt.gold & ~np.repeat(must_keep(always_read, passages), passages.lengths)
    recall = []
    for keep in keeps if earned.any() else ():
        kept = select(scores, always_read, passages, keep_pct=keep).kept
        recall.append(float(np.repeat(kept, passages.lengths)[earned].mean()))
    return tokens, score_s, tuple(recall), without


def _baseline(name: str, count: int, seed: str) -> Array:
    """float32, one a passage: random scores, or the distance from the middle."""
    if name == "random":
        rng = random.Random(seed)
        return np.array([rng.random() for _ in range(count)], np.float32)
    return np.asarray(np.abs(np.arange(count, dtype=np.float32) - count / 2))


def _described(found: Found) -> Iterable[str]:
    shares = "  ".join(f"{share:4.2f}" for share in found.recall) or "always read"
    yield f"{found.document:<22} {found.kind:<11} {found.scorer:<14} {shares}  {found.score_s:6.2f} s"


# ---- the report


def write_report(results: RetrievalResults) -> str:
    """Recall by scorer; by kind of question, language and form of document; likelihoods of answers."""
    lines = ["# bench retrieval", "", results.environment.line, "", *results.progress.lines]
    if results.missing:
        lines += [f"Left out, because their packages hold other texts: {', '.join(results.missing)}.", ""]
    if results.settings:
        lines += [f"Settings: {', '.join(results.settings)}.", ""]
    lines += [f"Mean/strict recall of the passages that answer a question, {results.model}.", ""]
    for held_out, title in ((True, "Held-out documents"), (False, "Documents for tuning")):
        half = [found for found in results.found if found.held_out == held_out and found.recall]
        if half:
            lines += _half(title, half, results.keeps)
    if results.answers:
        lines += answers_report(results.answers)
    return "\n".join(lines)


def _half(title: str, half: Sequence[Found], keeps: Sequence[float]) -> list[str]:
    columns = " | ".join(f"{keep:g}%" for keep in keeps)
    scorers = list(dict.fromkeys(found.scorer for found in half))
    rows, worse = [], []
    for scorer in scorers:
        some = [found for found in half if found.scorer == scorer]
        seconds = median(found.score_s for found in some)
        rows.append(f"{scorer} | {len(some)} | {_shares(some)} | {seconds:.2f}")
    lines = [f"## {title}", "", *table(f"scorer | questions | {columns} | seconds", rows)]
    lines += [*_incomplete(half), ""]
    rows = []
    for group in sorted({group for found in half for group in _groups(found)}, key=_group_order):
        of_group = [found for found in half if group in _groups(found)]
        reference = [found for found in of_group if found.scorer == _REFERENCE]
        for scorer in scorers:
            some = [found for found in of_group if found.scorer == scorer]
            if not some:  # the run was stopped
                continue
            rows.append(f"{group} | {len(some)} | {scorer} | {_shares(some)}")
            if scorer != _REFERENCE and scorer not in RETRIEVAL_BASELINES and len(some) == len(reference):
                for keep, mine, other in zip(keeps, _means(some), _means(reference)):
                    if mine < other - _TOLERANCE:
                        worse.append(f"{scorer}, {group}, {keep:g}%: {mine:.2f} instead of {other:.2f}")
    lines += table(f"group | questions | scorer | {columns}", rows)
    if worse:
        lines += ["", f"Worse than `{_REFERENCE}` by more than {_TOLERANCE} in the mean:", ""]
        lines += [f"- {each}" for each in worse]
    return [*lines, ""]


def _incomplete(half: Sequence[Found]) -> list[str]:
    """Which scorers did not use a part of them, and why."""
    times = Counter((found.scorer, found.without) for found in half if found.without)
    return ["", *(f"- {scorer}, {n} questions: {why}" for (scorer, why), n in times.items())] if times else []


def _groups(found: Found) -> tuple[str, ...]:
    return f"question: {found.kind}", f"language: {found.language}", f"form: {found.form}"


def _group_order(group: str) -> tuple[int, bool, str]:
    """Kinds of questions first, among them paraphrases, then languages and forms."""
    what, _, name = group.partition(": ")
    return ("question", "language", "form").index(what), name != "paraphrase", name


def _means(found: Sequence[Found]) -> list[float]:
    return [sum(column) / len(column) for column in zip(*(one.recall for one in found))]


def _shares(found: Sequence[Found]) -> str:
    columns = zip(*(one.recall for one in found))
    strict = [sum(share > 0.999 for share in column) / len(column) for column in columns]
    return " | ".join(f"{mean:.2f}/{whole:.2f}" for mean, whole in zip(_means(found), strict))


# ---- likelihood of right answers

_WITHOUT, _EVERYTHING = "no document", "everything"


class AnswerWay(Struct, frozen=True):
    """One way to read: `log_likelihood` in nats a token; `tokens` of the prompt that were read."""

    name: str
    log_likelihood: float
    tokens: int


class Answered(Struct, frozen=True):
    """One question, by its number in its document."""

    document: str
    number: int
    kind: str
    language: str
    held_out: bool
    ways: tuple[AnswerWay, ...]

    @property
    def key(self) -> tuple[str, int]:
        return self.document, self.number


def answer_pieces(
    loaded: LoadedModel,
    embedder: Embedder,
    present: Sequence[tuple[Document, str]],
    of_documents: dict[str, list[Question]],
    settings: Prefill,
    keeps: Sequence[float],
    most: int,
) -> list[BenchPiece[Answered]]:
    """Pieces for at most `most` questions that have an answer, evenly from all documents, by document."""
    answerable = {
        document.name: [n for n, one in enumerate(of_documents[document.name]) if one.answer]
        for document, _ in present
    }
    rounds = max(map(len, answerable.values()), default=0)
    order = [
        (name, numbers[at])
        for at in range(rounds)
        for name, numbers in answerable.items()
        if at < len(numbers)
    ]
    chosen = set(order[:most])
    whole: dict[str, CachedSequence] = {}  # of the last document

    def measure(document: Document, text: str, number: int) -> Answered:
        from core.kv.cached_sequence import CachedSequence

        if document.name not in whole:
            whole.clear()
            whole[document.name] = CachedSequence(loaded.new_cache)
        question = of_documents[document.name][number]
        attachment = Attachment(document.name, text)
        ways = tuple(_ways(loaded, embedder, attachment, question, settings, keeps, whole[document.name]))
        return Answered(document.name, number, question.kind, document.language, document.held_out, ways)

    return [
        BenchPiece((document.name, number), partial(measure, document, text, number))
        for document, text in present
        for number in answerable[document.name]
        if (document.name, number) in chosen
    ]


def _ways(
    loaded: LoadedModel,
    embedder: Embedder,
    attachment: Attachment,
    question: Question,
    settings: Prefill,
    keeps: Sequence[float],
    whole: CachedSequence,
) -> Iterator[AnswerWay]:
    """`whole` is the dense prefill of the document, or empty; it is extended."""
    from core.kv.cached_sequence import CachedSequence

    answer = list(loaded.tokenizer.encode(question.answer, add_special_tokens=False))
    everything = assign_all(Settings(prefill=settings), [("prefill.mode", "off")]).prefill
    with_document, without = (
        prompt_text(loaded, (Message("user", question.question, attachments),))
        for attachments in ((attachment,), ())
    )
    sequence, _ = read(loaded, CachedSequence(loaded.new_cache), without, everything)
    yield AnswerWay(_WITHOUT, -nll(loaded, sequence, without.ids[-1], answer), len(without.ids))
    for keep in keeps:
        chosen = [("prefill.mode", "on"), ("prefill.keep_pct", keep)]
        sparse = assign_all(Settings(prefill=settings), chosen).prefill
        sequence, reading = read(loaded, CachedSequence(loaded.new_cache), with_document, sparse, embedder)
        if not reading.outcome.sparse:
            raise RequestError(f"Sparse prefill was refused: {reading.outcome.reason}.", "Omit --answers.")
        tokens = sequence.columns.count + 1
        likelihood = -nll(loaded, sequence, with_document.ids[-1], answer)
        yield AnswerWay(f"{keep:g}%", likelihood, tokens)
    read(loaded, whole, with_document, everything)
    sequence = whole.fork(len(whole.tokens))
    likelihood = -nll(loaded, sequence, with_document.ids[-1], answer)
    yield AnswerWay(_EVERYTHING, likelihood, len(with_document.ids))


def prompt_text(loaded: LoadedModel, messages: Sequence[Message]) -> PromptText:
    """The prompt for the answer to `messages`, whose last one is the question. Without thinking."""
    from core.models.prompt import offsets, render
    from core.prefill.layout import layout
    from core.prefill.reading import PromptText

    prompt = render(loaded.tokenizer, messages, thinking=False)
    parts = layout(prompt, offsets(loaded.tokenizer, prompt))
    return PromptText(list(prompt.ids), messages[-1].content, lambda: parts)


def read(
    loaded: LoadedModel,
    sequence: CachedSequence,
    text: PromptText,
    settings: Prefill,
    embedder: Embedder | None = None,
) -> tuple[CachedSequence, Reading]:
    """Read all of `text` but its last token into `sequence`, as an answer would."""
    from core.prefill.reading import Reading, ReadingInputs

    def no_draft() -> Any:
        raise RequestError("This bench has no draft model.", "Choose another scorer.")

    inputs = ReadingInputs(no_draft, embedder=embedder)
    reading = Reading("", loaded, sequence, text, settings, inputs)
    for _ in chain(reading.plan(), reading.events()):
        pass
    return sequence, reading


def nll(loaded: LoadedModel, sequence: CachedSequence, last: int, answer: Sequence[int]) -> float:
    """Mean negative log-likelihood of `answer` after `sequence` and the token `last`, in nats a token.

    The sequence can't be used afterwards.
    """
    import mlx.core as mx

    from core.bench.quality_readers import log_probabilities, mean_nll

    block = [last, *answer[:-1]]
    found = log_probabilities(loaded.model(mx.array(block)[None], cache=sequence.cache)[0])
    return mean_nll(found, answer)


def describe_answered(answered: Answered) -> Iterable[str]:
    """A line about one question."""
    ways = "  ".join(f"{way.name} {way.log_likelihood:.2f}" for way in answered.ways)
    yield f"{answered.document:<22} {answered.kind:<11} {ways}"


def answers_report(answers: Sequence[Answered]) -> list[str]:
    """A table for each half, and one of the held-out half for each kind of question and language."""
    lines = [
        "## Right answers",
        "",
        "Mean log-likelihood of a right answer, in nats a token (higher is better). Share of the gain: what"
        " remains of the difference between no document and everything.",
        "",
    ]
    for held_out, title in ((True, "Held-out documents"), (False, "Documents for tuning")):
        half = [answered for answered in answers if answered.held_out == held_out]
        if half:
            lines += [f"### {title}: {len(half)} questions", "", *_table(half), ""]
    held = [answered for answered in answers if answered.held_out]
    if held:
        names = [way.name for way in held[0].ways]
        rows = []
        groups = sorted({f"question: {one.kind}" for one in held})
        groups += sorted({f"language: {one.language}" for one in held})
        for group in groups:
            some = [one for one in held if group in (f"question: {one.kind}", f"language: {one.language}")]
            means = (f"{_mean(_of(some, name)):.2f}" for name in names)
            rows.append(f"{group} | {len(some)} | {' | '.join(means)}")
        lines += [*table(f"group | questions | {' | '.join(names)}", rows), ""]
    return lines


def _table(some: Sequence[Answered]) -> list[str]:
    rows = []
    without, everything = _of(some, _WITHOUT), _of(some, _EVERYTHING)
    gain = _mean(everything) - _mean(without)
    for name in (way.name for way in some[0].ways):
        mine = _of(some, name)
        share = f"{(_mean(mine) - _mean(without)) / gain:.0%}" if gain > 0 else "—"
        likelier = sum(one > other for one, other in zip(mine, without)) / len(some)
        tokens = _mean([way.tokens for one in some for way in one.ways if way.name == name])
        rows.append(f"{name} | {_mean(mine):.2f} | {share} | {likelier:.0%} | {tokens:,.0f}")
    return table("read | log-likelihood | share of the gain | likelier than without | tokens read", rows)


def _of(some: Sequence[Answered], name: str) -> list[float]:
    return [way.log_likelihood for one in some for way in one.ways if way.name == name]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
