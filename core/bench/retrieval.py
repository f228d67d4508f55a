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
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from core.bench.runner import Bench, BenchPiece, describe, run_bench, table
from core.errors import RequestError
from core.events import Attachment, Generate, Message
from core.events.bench import median
from core.settings import Settings, assign_all, parse_all
from core.settings.prefill import Prefill
from core.system.prepared import prepared

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.decoding.answer import Answer
    from core.encoder.store import Embedder
    from core.kv.cached_sequence import CachedSequence
    from core.models.loader import LoadedModel
    from core.prefill.layout import Layout
    from core.prefill.words import Words
    from core.prompt import Prompt


# ---- documents and questions

_OURS = Path(__file__).resolve().parents[2] / "resources" / "bench"
T = TypeVar("T")
QuestionKind = Literal["verbatim", "paraphrase", "code", "two places", "aggregate", "beginning", "end"]
Language = Literal["en", "de", "fr", "es", "zh"]


class BenchDocument(Struct, frozen=True):
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


def documents() -> list[BenchDocument]:
    """All documents of the retrieval set."""
    return _lines("documents.jsonl", BenchDocument)


def questions() -> list[Question]:
    """All questions, grouped by document."""
    return _lines("questions.jsonl", Question)


def _lines(name: str, kind: type[T]) -> list[T]:
    return [
        msgspec.json.decode(line, type=prepared(kind))
        for line in (_OURS / "retrieval" / name).read_bytes().splitlines()
    ]


Array = np.ndarray[Any, Any]
# Scores without a scorer.
BASELINES = ("random", "head-and-tail")
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


def run(options: argparse.Namespace) -> int:
    """Measure; write `retrieval.jsonl` and `.md`, and with `--answers` `answers.jsonl` and `.md`."""
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
    conditions = (loaded.info.name, options.keep, *sorted(options.set))
    # Vectors of a document are computed once, and not put into the app's cache.
    tool = _Retrieval(loaded, Embedder(VectorStore(options.out / "vectors")), settings, options.keep)
    asked = [
        _Asked(document, text, number, question)
        for document, text in present
        for number, question in enumerate(one for one in questions() if one.document == document.name)
    ]
    pieces = [
        BenchPiece((each.document.name, each.number, scorer), partial(tool.found, each, scorer))
        for each in asked
        for scorer in options.scorers
    ]
    title = f"Recall of the passages that answer a question, {loaded.info.name}"
    bench = Bench("retrieval", title, environment, conditions, Found, options.out)
    _, progress = run_bench(
        bench,
        pieces,
        _line,
        lambda found: write_report(found, options.keep, missing, options.set),
        quiet=options.quiet,
    )
    if options.answers and progress.whole:
        of_answers = [
            BenchPiece((each.document.name, each.number), partial(tool.answered, each))
            for each in _with_answers(asked, options.answers)
        ]
        title = f"Right answers, {loaded.info.name}"
        second = Bench("answers", title, environment, conditions, Answered, options.out)
        _, progress = run_bench(second, of_answers, _answered_line, answers_report, quiet=options.quiet)
    return progress.status(True)


# ---- measuring


class _Asked(NamedTuple):
    """A question, by its number in its document, whose text is `text`."""

    document: BenchDocument
    text: str
    number: int
    question: Question

    @property
    def messages(self) -> tuple[Message, ...]:
        return (Message("user", self.question.question, (Attachment(self.document.name, self.text),)),)


class _Prompt(NamedTuple):
    """A rendered question about a document, with its terms. `gold` (bool, one a token): what answers it."""

    ids: list[int]
    layout: Layout
    words: Words
    gold: Array


class _Retrieval:
    """Measures questions with one model. Owned by the thread that loaded it."""

    def __init__(
        self, loaded: LoadedModel, embedder: Embedder, settings: Prefill, keeps: Sequence[float]
    ) -> None:
        self._loaded = loaded
        self._embedder = embedder
        self._settings = settings
        self._keeps = keeps
        # All scorers of a question share its prompt, all questions about a document its dense prefill.
        self._prompt = lru_cache(maxsize=1)(partial(_rendered, loaded))
        self._whole = lru_cache(maxsize=1)(self._new_sequence)

    def found(self, asked: _Asked, scorer: str) -> Found:
        """The recall of a scorer for one question."""
        from core.machine.profile import finished
        from core.prefill.plan import must_keep, select
        from core.prefill.scorers import SCORERS as SPECS
        from core.prefill.scorers.scorer import ScorerInputs

        prompt = self._prompt(asked)
        layout, tokens = prompt.layout, len(prompt.ids)
        passages = layout.passages(0, tokens, self._settings)
        without = ""
        started = time.perf_counter()
        if scorer in SPECS:
            inputs = ScorerInputs(
                self._loaded,
                prompt.ids,
                layout,
                passages,
                prompt.words,
                self._settings,
                embedder=self._embedder,
            )
            scored = finished(SPECS[scorer].score(inputs))
            scores, without = scored.scores, scored.without
        else:
            scores = _baseline(scorer, len(passages), asked.question.question)
        score_s = time.perf_counter() - started
        earned = prompt.gold & ~np.repeat(must_keep(layout.always_read, passages), passages.lengths)
        recall = []
        for keep in self._keeps if earned.any() else ():
            kept = select(scores, layout.always_read, passages, keep_pct=keep).kept
            recall.append(float(np.repeat(kept, passages.lengths)[earned].mean()))
        return Found(
            document=asked.document.name,
            number=asked.number,
            scorer=scorer,
            kind=asked.question.kind,
            form=asked.document.form,
            language=str(asked.document.language),
            held_out=asked.document.held_out,
            tokens=tokens,
            score_s=score_s,
            recall=tuple(recall),
            without=without,
        )

    def answered(self, asked: _Asked) -> Answered:
        """How likely the right answer is without the document, after sparse and after dense prefill."""
        document = asked.document
        ways = tuple(self._ways(asked))
        kind, language = asked.question.kind, document.language
        return Answered(document.name, asked.number, kind, language, document.held_out, ways)

    def _ways(self, asked: _Asked) -> Iterator[AnswerWay]:
        loaded, question = self._loaded, asked.question
        answer = list(loaded.tokenizer.encode(question.answer, add_special_tokens=False))
        dense = assign_all(Settings(prefill=self._settings), [("prefill.mode", "off")]).prefill
        with_document = prompt_for(loaded, asked.messages)
        without = prompt_for(loaded, (Message("user", question.question),))
        sequence = read(loaded, self._new_sequence(), without, dense).sequence
        yield AnswerWay(_WITHOUT, -nll(loaded, sequence, without.ids[-1], answer), len(without.ids))
        for keep in self._keeps:
            chosen = [("prefill.mode", "on"), ("prefill.keep_pct", keep)]
            sparse = assign_all(Settings(prefill=self._settings), chosen).prefill
            read_in = read(loaded, self._new_sequence(), with_document, sparse, self._embedder)
            if not read_in.sparse:
                raise RequestError(
                    f"Sparse prefill was refused: {read_in.reading_reason}.", "Omit --answers."
                )
            sequence = read_in.sequence
            tokens = sequence.columns.count + 1
            likelihood = -nll(loaded, sequence, with_document.ids[-1], answer)
            yield AnswerWay(f"{keep:g}%", likelihood, tokens)
        whole = self._whole(asked.document.name)
        read(loaded, whole, with_document, dense)
        sequence = whole.fork(len(whole.tokens))
        likelihood = -nll(loaded, sequence, with_document.ids[-1], answer)
        yield AnswerWay(_EVERYTHING, likelihood, len(with_document.ids))

    def _new_sequence(self, document: str = "") -> CachedSequence:
        from core.kv.cached_sequence import CachedSequence

        return CachedSequence(self._loaded.new_cache)


def _rendered(loaded: LoadedModel, asked: _Asked) -> _Prompt:
    from core.prefill.layout import layout
    from core.prefill.words import words_of
    from core.prompt import offsets, render

    prompt = render(loaded.tokenizer, asked.messages)
    parts = layout(prompt, offsets(loaded.tokenizer, prompt))
    gold = np.zeros(len(prompt.ids), dtype=np.bool_)
    for first, last in asked.question.gold:
        gold |= (parts.source == 0) & (parts.first_char < last) & (parts.last_char > first)
    words = words_of(loaded.tokenizer.convert_ids_to_tokens(prompt.ids))
    return _Prompt(list(prompt.ids), parts, words, gold)


def _baseline(name: str, count: int, seed: str) -> Array:
    """float32, one a passage: random scores, or the distance from the middle."""
    if name == "random":
        rng = random.Random(seed)
        return np.array([rng.random() for _ in range(count)], np.float32)
    return np.asarray(np.abs(np.arange(count, dtype=np.float32) - count / 2))


def _line(found: Found) -> str:
    shares = "  ".join(f"{share:4.2f}" for share in found.recall) or "always read"
    return f"{found.document:<22} {found.kind:<11} {found.scorer:<14} {shares}  {found.score_s:6.2f} s"


# ---- the report


def write_report(
    found: Sequence[Found], keeps: Sequence[float], missing: Sequence[str], settings: Sequence[str]
) -> list[str]:
    """Recall by scorer; by kind of question, language and form of document."""
    lines: list[str] = []
    if missing:
        lines += [f"Left out, because their packages hold other texts: {', '.join(missing)}.", ""]
    if settings:
        lines += [f"Settings: {', '.join(settings)}.", ""]
    lines += ["Mean/strict recall.", ""]
    for held_out, title in ((True, "Held-out documents"), (False, "Documents for tuning")):
        half = [each for each in found if each.held_out == held_out and each.recall]
        if half:
            lines += _half(title, half, keeps)
    return lines


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
            if scorer != _REFERENCE and scorer not in BASELINES and len(some) == len(reference):
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


def _with_answers(asked: Sequence[_Asked], most: int) -> list[_Asked]:
    """At most `most` questions that have an answer, evenly from all documents, by document."""
    places: Counter[str] = Counter()
    order: list[tuple[int, int]] = []
    for at, each in enumerate(asked):
        if each.question.answer:
            order.append((places[each.document.name], at))
            places[each.document.name] += 1
    chosen = {at for _, at in sorted(order)[:most]}
    return [each for at, each in enumerate(asked) if at in chosen]


def prompt_for(loaded: LoadedModel, messages: Sequence[Message]) -> Prompt:
    """The prompt for the answer to `messages`, whose last one is the question. Without thinking."""
    from core.prompt import render

    return render(loaded.tokenizer, messages, thinking="off")


def read(
    loaded: LoadedModel,
    sequence: CachedSequence,
    prompt: Prompt,
    settings: Prefill,
    embedder: Embedder | None = None,
) -> Answer:
    """Read all of `prompt` but its last token into `sequence`, as an answer would."""
    from core.decoding.answer import Answer
    from core.prefill.reading import Reading

    answer = Answer(Generate("", (), Settings(prefill=settings)), loaded, prompt)
    answer.sequence = sequence
    reading = Reading(answer, embedder=embedder)
    for _ in chain(reading.plan(), reading.events()):
        pass
    return answer


def nll(loaded: LoadedModel, sequence: CachedSequence, last: int, answer: Sequence[int]) -> float:
    """Mean negative log-likelihood of `answer` after `sequence` and the token `last`, in nats a token.

    The sequence can't be used afterwards.
    """
    import mlx.core as mx

    block = [last, *answer[:-1]]
    logits = loaded.model(mx.array(block)[None], cache=sequence.cache)[0].astype(mx.float32)
    taken = mx.take_along_axis(logits, mx.array(list(answer))[:, None], axis=-1)[:, 0]
    return float((mx.logsumexp(logits, axis=-1) - taken).mean())


def _answered_line(answered: Answered) -> str:
    ways = "  ".join(f"{way.name} {way.log_likelihood:.2f}" for way in answered.ways)
    return f"{answered.document:<22} {answered.kind:<11} {ways}"


def answers_report(answers: Sequence[Answered]) -> list[str]:
    """A table for each half, and one of the held-out half for each kind of question and language."""
    lines = [
        "Mean log-likelihood of a right answer, in nats a token (higher is better). Share of the gain: what"
        " remains of the difference between no document and everything.",
        "",
    ]
    for held_out, title in ((True, "Held-out documents"), (False, "Documents for tuning")):
        half = [answered for answered in answers if answered.held_out == held_out]
        if half:
            lines += [f"## {title}: {len(half)} questions", "", *_table(half), ""]
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
