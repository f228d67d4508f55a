"""`draftlight bench retrieval --answers N`: the likelihood of right answers after sparse and dense prefill.

The right answer is appended to the prompt, and the mean log-likelihood of its tokens is measured after sparse
prefill, after dense prefill and without the document. The questions about a document share its dense prefill.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from core.bench.harness import BenchPiece, table
from core.bench.retrieval.questions import Document, Question
from core.errors import RequestError
from core.events import Attachment, Message
from core.settings import Settings, assign_all
from core.settings.prefill import Prefill

if TYPE_CHECKING:  # importing these loads MLX, which the bench must prepare first
    from core.encoder.store import Embedder
    from core.kv.cached_sequence import CachedSequence
    from core.models.loader import LoadedModel
    from core.prefill.reading import PromptText, Reading

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

    from core.bench.quality.readers import log_probabilities, mean_nll

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
