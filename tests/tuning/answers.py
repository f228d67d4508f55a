"""Right answers and loops: short facts asked about twelve documents, at the settings that a person gets.

    python -m tests.tuning answers --out DIR [--half held-out] [--baseline OTHER/answers.jsonl]

Sixty questions (`questions.json`) about rules, manuals, minutes, letters, contracts, a log and a story in
English, German and French; five documents are longer than 4,000 tokens. Defaults are tuned on the documents
that are not held out. Each question starts a new chat with the document attached, in the product's engine.

An answer is right if it contains one of the facts within its first `GRADED_WORDS` words, as whole words, and
does not negate it. An answer loops if it says the same thing three times (`loops`), or if over 30% of its
words repeat its own earlier text (`repeated_share`). Both rules read the finished text only, independently of
what stops an answer in the product.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from core.bench.answers import start_engine
from core.bench.runner import Bench, BenchPiece, file_label, read_input, run_bench, sign_test, table
from core.cli.arguments import settings_from
from core.decoding.repetition import repeated_share
from core.errors import RequestError
from core.events import Attachment, Finished, Generate, Message, Token
from core.settings import Settings, assign_all

if TYPE_CHECKING:  # importing it loads MLX, which `start_engine` prepares first
    from core.engine.engine import Engine

_ROOT = Path(__file__).resolve().parents[2]
_QUESTIONS = Path(__file__).with_name("questions.json")
MAX_TOKENS = 160
Half = Literal["dev", "held-out", "all"]


class Question(Struct, frozen=True):
    """`answers`: alternatives, of which an answer has to contain one."""

    question: str
    answers: tuple[str, ...]


class Document(Struct, frozen=True):
    """`file` is relative to the repository."""

    name: str
    file: str
    held_out: bool
    questions: tuple[Question, ...]

    def attachment(self) -> Attachment:
        path = _ROOT / self.file
        return Attachment(path.name, path.read_text(encoding="utf-8"))


def documents(half: Half = "all") -> list[Document]:
    """The documents of one half, or all."""
    found = msgspec.json.decode(_QUESTIONS.read_bytes(), type=list[Document])
    return [each for each in found if half == "all" or each.held_out == (half == "held-out")]


# ---- grading

# A person who asks for a fact stops reading after a few sentences.
GRADED_WORDS = 80
_NEGATION_WORDS = (
    "no not never none nobody nothing neither nor without cannot isn't aren't wasn't weren't don't"
    " doesn't didn't won't wouldn't can't couldn't shouldn't hasn't haven't unknown unclear nicht kein"
    " keine keinen keinem keiner niemand nie ohne weder pas jamais aucun aucune sans ni"
)
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
# Ends what a negation before it covers: “not £460 but £640”.
_CLAUSE_ENDS = {"but", "instead", "rather", "sondern", "mais"}
_WORD = re.compile(r"[^\W_]+(?:['’.,][^\W_]+)*")


def words_of(text: str) -> list[str]:
    """Lower-case words and numbers without accents, thousands separators and possessive endings."""
    plain = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", plain)
    plain = re.sub(r"\b(?:l|d|qu|n|s|c|j|m|t)'(?=\w)", lambda match: match[0][:-1] + " ", plain)
    return [re.sub(r"'s$", "", word) for word in _WORD.findall(plain)]


def is_right(answer: str, alternatives: Sequence[str]) -> bool:
    """Whether `answer` states one of the facts early and no negation stands before it in its sentence."""
    wanted = [words_of(each) for each in alternatives]
    left = GRADED_WORDS
    # Not at the point of an abbreviation or of a number.
    for sentence in re.split(r"(?<=[.!?;])\s+|\n+", answer):
        words = words_of(sentence)[:left]
        left -= len(words)
        negated = False
        for at, word in enumerate(words):
            negated = word not in _CLAUSE_ENDS and (negated or word in _NEGATIONS)
            if not negated and any(words[at : at + len(fact)] == fact for fact in wanted):
                return True
    return False


LOOP_TIMES = 3
LOOP_CYCLE = 4
LOOP_WORDS = 5
_CUTS = (r"\n+", r"(?<=[.!?])\s+|\n+", r"(?<=[.!?;:,])\s+|\n+")
LOOP_SHARE = 0.3


def loops(answer: str) -> bool:
    """Whether `answer` repeats itself: three times in a row or in a cycle, or in a large part."""
    return any(_cycles(re.split(cut, answer)) for cut in _CUTS) or repeated_share(answer.split()) > LOOP_SHARE


def _cycles(units: Sequence[str]) -> bool:
    """Whether a cycle of at most four lines, sentences or clauses occurs three times in a row."""
    held = [" ".join(words_of(each)) for each in units]
    held = [each for each in held if each]
    for period in range(1, LOOP_CYCLE + 1):
        for start in range(len(held) - LOOP_TIMES * period + 1):
            cycle = held[start : start + period]
            long = any(len(each.split()) >= LOOP_WORDS for each in cycle)
            if long and held[start : start + LOOP_TIMES * period] == cycle * LOOP_TIMES:
                return True
    return False


# ---- measuring


class Answered(Struct, frozen=True):
    """One answer. `read_tokens`: of the prompt, which has `prompt_tokens`."""

    document: str
    question: str
    answer: str
    reason: str
    tokens: int
    prompt_tokens: int
    skipped_tokens: int
    acceptance: float

    @property
    def key(self) -> tuple[str, str]:
        return self.document, self.question


def run(options: argparse.Namespace) -> int:
    """Measure and write `answers.jsonl` and `answers.md`. Resumes after an interruption."""
    settings_from(options)  # report errors before a model is loaded
    asked = documents(options.half)
    baseline = _baseline(options.baseline) if options.baseline else {}
    engine, info, environment = start_engine(options.model, quiet=options.quiet)
    # The decision must not depend on how busy the machine is; two cores read 2,048 tokens in more than the
    # default patience.
    base = assign_all(info.settings, [("prefill.patience_s", 0.0), ("sampling.max_tokens", MAX_TOKENS)])
    settings = settings_from(options, base)
    pieces = [
        BenchPiece(
            (document.name, question.question), partial(_answered, engine, document, question, settings)
        )
        for document in asked
        for question in document.questions
    ]
    facts = {(d.name, q.question): q.answers for d in asked for q in d.questions}
    conditions = (info.name, file_label(_QUESTIONS), msgspec.json.encode(settings).decode())
    title = f"Right answers and loops, {info.name}, {options.half}"
    bench = Bench("answers", title, environment, conditions, Answered, options.out)
    _, progress = run_bench(
        bench,
        pieces,
        lambda each: _line(each, facts),
        lambda found: report(found, facts, baseline),
        quiet=options.quiet,
    )
    engine.close()
    return progress.status(True)


def _answered(engine: Engine, document: Document, question: Question, settings: Settings) -> Answered:
    message = Message("user", question.question, (document.attachment(),))
    texts: list[str] = []
    end: Finished | None = None
    for event in engine.generate(Generate("answers", (message,), settings)):
        if isinstance(event, Token):
            texts.append(event.text)
        elif isinstance(event, Finished):
            end = event
    assert end is not None
    stats = end.stats
    return Answered(
        document.name,
        question.question,
        "".join(texts),
        end.reason,
        stats.tokens,
        stats.prompt_tokens,
        stats.skipped_tokens,
        stats.acceptance,
    )


def _baseline(path: Path) -> dict[tuple[str, str], Answered]:
    """The answers of an earlier run, from its `answers.jsonl`. Raises `RequestError`."""
    try:
        found = [msgspec.json.decode(line, type=Answered) for line in read_input(path).splitlines()[1:]]
    except msgspec.DecodeError as error:
        raise RequestError(
            f"{path} cannot be read: {error}.", "Give the answers.jsonl of another run."
        ) from None
    return {each.key: each for each in found}


# ---- report

Facts = dict[tuple[str, str], tuple[str, ...]]


def _line(each: Answered, facts: Facts) -> str:
    marks = (
        "right" if is_right(each.answer, facts[each.key]) else "wrong",
        "LOOP" if loops(each.answer) else "",
    )
    words = " ".join(each.answer.split())[:90]
    return f"{' '.join(marks):<12} {each.tokens:>4} tokens  {each.question}  {words}"


def report(answers: Sequence[Answered], facts: Facts, baseline: dict[tuple[str, str], Answered]) -> list[str]:
    """The results as Markdown, paired with `baseline` where it has the same question."""
    rows = []
    for name in dict.fromkeys(each.document for each in answers):
        some = [each for each in answers if each.document == name]
        earlier = [baseline[each.key] for each in some if each.key in baseline]
        rows.append(
            f"{name} | {_counts(some, facts)} | {_counts(earlier, facts) if earlier else '– | – | – | –'}"
        )
    before = [baseline[each.key] for each in answers if each.key in baseline]
    rows.append(f"all | {_counts(answers, facts)} | {_counts(before, facts) if before else '– | – | – | –'}")
    head = "document | questions | right | loops | tokens | baseline’s questions | right | loops | tokens"
    lines = [*table(head, rows), ""]
    if before:
        pairs = [
            (is_right(each.answer, facts[each.key]), is_right(baseline[each.key].answer, facts[each.key]))
            for each in answers
            if each.key in baseline
        ]
        won = sum(now and not then for now, then in pairs)
        lost = sum(then and not now for now, then in pairs)
        lines += [f"Paired: {won} won, {lost} lost, p = {sign_test(won, lost):.3f}.", ""]
    return [*lines, *(f"- {_line(each, facts)}" for each in answers)]


def _counts(some: Sequence[Answered], facts: Facts) -> str:
    right = sum(is_right(each.answer, facts[each.key]) for each in some)
    looped = sum(loops(each.answer) for each in some)
    return f"{len(some)} | {right} | {looped} | {sum(each.tokens for each in some)}"
