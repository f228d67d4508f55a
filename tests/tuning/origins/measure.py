"""`python -m tests.tuning origins`: facts of the labelled answers, and their time.

A label is marked if a fact that stands nowhere overlaps it. Of labels that stand nowhere 95% should be
marked, of the others 2% at most. What is marked beside the labels is counted, too.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from core.origins import Fact, Index, Source, Tracer, trace
from core.origins.runs import Matcher
from core.origins.words import words
from tests.tuning.origins import FOLDER, Half, Label, LabelledAnswer, LabelledDocument, labelled

_KINDS = ("number", "date", "amount", "identifier", "quotation", "name")


class Judged(Struct, frozen=True):
    """A label with the facts that overlap it."""

    document: LabelledDocument
    answer: LabelledAnswer
    label: Label
    facts: tuple[Fact, ...]

    @property
    def marked(self) -> bool:
        return any(fact.state == "nowhere" for fact in self.facts)


class Table(Struct):
    """Labels of one half, and marked facts without a label."""

    judged: list[Judged]
    beside: list[tuple[LabelledDocument, LabelledAnswer, Fact]]


def facts_of(document: LabelledDocument, answer: LabelledAnswer) -> tuple[Fact, ...]:
    text = document.text()
    index = Index(text)
    assert index.build()
    at, read = 0, []
    for start, end in answer.skipped:
        read.append((at, start))
        at = end
    read.append((at, len(text)))
    sources = [Source(document.document, text)]
    spans = [read] if answer.skipped else None
    return trace(answer.answer, sources, [index], answer.question, read=spans).facts


def table(documents: Iterable[LabelledDocument]) -> Table:
    found = Table([], [])
    for document in documents:
        for answer in document.answers:
            facts = facts_of(document, answer)
            for label in answer.labels:
                over = tuple(each for each in facts if each.start < label.end and label.start < each.end)
                found.judged.append(Judged(document, answer, label, over))
            for fact in facts:
                labels = [each for each in answer.labels if each.start < fact.end and fact.start < each.end]
                if fact.state == "nowhere" and not labels:
                    found.beside.append((document, answer, fact))
    return found


def _share(judged: list[Judged]) -> str:
    marked = sum(each.marked for each in judged)
    return f"{marked:4} of {len(judged):4}  {100 * marked / len(judged) if judged else 0:5.1f}%"


def _rows(found: Table) -> Iterator[str]:
    nowhere = [each for each in found.judged if each.label.stands == "nowhere"]
    somewhere = [each for each in found.judged if each.label.stands != "nowhere"]
    yield f"  stand nowhere, marked    {_share(nowhere)}"
    yield f"  stand somewhere, marked  {_share(somewhere)}"
    for kind in _KINDS:
        missed = [each for each in nowhere if each.label.kind == kind]
        false = [each for each in somewhere if each.label.kind == kind]
        yield f"    {kind:10}  nowhere {_share(missed)}   somewhere {_share(false)}"
    yield f"  marked beside the labels {len(found.beside):4}"
    skipped = [each for each in found.judged if each.label.stands == "skipped"]
    told = sum(any(fact.state == "skipped" for fact in each.facts) for each in skipped)
    yield f"  skipped, told as such    {told:4} of {len(skipped):4}"
    wrong = [each for each in found.judged if each.label.wrong]
    elsewhere = sum(each.label.stands != "nowhere" for each in wrong)
    yield f"  wrong, stand elsewhere   {elsewhere:4} of {len(wrong):4}"


def _misses(found: Table) -> Iterator[str]:
    for each in found.judged:
        if each.marked == (each.label.stands == "nowhere"):
            continue
        label, text = each.label, each.answer.answer
        about = text[max(0, label.start - 40) : label.end + 30].replace("\n", "⏎")
        states = [(fact.kind, fact.state, text[fact.start : fact.end]) for fact in each.facts]
        yield f"  {each.document.document}: {label.kind} {label.text!r} {label.stands}; {states}"
        yield f"      {about}"
    for document, answer, fact in found.beside:
        about = answer.answer[max(0, fact.start - 40) : fact.end + 30].replace("\n", "⏎")
        yield f"  {document.document}: beside {fact.kind} {answer.answer[fact.start : fact.end]!r}"
        yield f"      {about}"


# ---- time


_DOCUMENT_WORDS = 75_000  # 100,000 tokens
_ANSWER_WORDS = 3_000


def long_texts(seed: int = 1) -> tuple[str, str]:
    """A document of 100,000 tokens of the labelled documents' sentences with drawn figures, and an answer of
    4,000 tokens with runs of it.
    """
    draw = random.Random(seed)
    lines = [
        line
        for path in sorted((FOLDER / "documents").iterdir())
        for line in path.read_text("utf-8").splitlines()
    ]
    lines = [line for line in lines if len(line.split()) > 3]

    def text(words: int, source: list[str]) -> Iterator[str]:
        while words > 0:
            line = draw.choice(source).replace("7", str(draw.randrange(10, 99)), 1)
            words -= len(line.split())
            yield line if draw.random() < 0.7 else " ".join(draw.sample(line.split(), len(line.split())))

    document = list(text(_DOCUMENT_WORDS, lines))
    return "\n\n".join(document), "\n\n".join(text(_ANSWER_WORDS, document))


def _timed() -> Iterator[str]:
    """Times of this thread alone, without garbage collection, which the app does between other events."""
    gc.disable()
    document, answer = long_texts()
    index, slices = Index(document), []
    while not index.complete:
        start = time.thread_time()
        index.build(0.004)
        slices.append(time.thread_time() - start)
    longest = 1000 * max(slices)
    yield f"  index: {sum(slices):.2f} s in {len(slices)} slices, the longest {longest:.1f} ms (at most 16)"
    sources, matching, whole = [Source("document", document)], [], []
    for _ in range(5):
        start = time.thread_time()
        matcher = Matcher([index])
        matcher.add(list(words(answer)), 0)
        matcher.interrupt()
        matching.append(time.thread_time() - start)
        start = time.thread_time()
        trace(answer, sources, [index], "What does it say?")
        whole.append(time.thread_time() - start)
    yield f"  matching: {1000 * median(matching):.1f} ms (at most 60)"
    yield f"  whole answer, with its facts: {1000 * median(whole):.1f} ms"
    tracer, steps = Tracer(sources, [index], "What does it say?"), []
    for at in range(0, len(answer), 4):
        start = time.thread_time()
        tracer.extend(answer[at : at + 4])
        _ = tracer.origins
        steps.append(time.thread_time() - start)
    worst = sorted(steps)[-len(steps) // 100]
    mean = sum(steps) / len(steps)
    yield f"  streaming: {1000 * median(steps):.3f} ms a token (at most 1), the mean {1000 * mean:.3f},"
    yield f"    99% below {1000 * worst:.3f}, the longest {1000 * max(steps):.1f}"


def _half(half: Half, names: Sequence[str], *, misses: bool) -> Iterator[str]:
    """A table of the half; with `names` one of these documents, and one of the others without misses."""
    documents = labelled(half)
    chosen = [each for each in documents if each.document in names]
    others = [each for each in documents if each.document not in names]
    for title, some in (
        ((f"{half}, chosen", chosen), (f"{half}, others", others)) if chosen else ((half, documents),)
    ):
        found = table(some)
        yield f"{title}: {len(found.judged)} labels"
        yield from _rows(found)
        if misses and some is not others:
            yield from _misses(found)


def run(options: argparse.Namespace) -> int:
    """Print the table of the halves, or the times."""
    lines = []
    if options.time:
        lines += ["times", *_timed()]
    for half in () if options.time else options.halves:
        lines += _half(half, options.documents, misses=options.misses)
    print("\n".join(lines))
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "origins.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0
