"""`draftlight bench quality`: the effect of sparse prefill on answers and likelihoods, relative to dense.

Three questions: does the model still answer tasks correctly; how much less likely are the continuation of a
document and a requested passage of it; and does a scorer beat baselines without a score at the same keep?
All prompts are generated from seeds (`core.bench.quality_readers`). Every prompt is read densely and then by
each reader. Trials are appended to `trials.jsonl`, so an interrupted run continues.

A regression counts only where dense passes. Tests are exact and paired: McNemar's for passes, a sign test for
likelihoods. A scorer has to beat the readers without a score (`random`, `head-and-tail`, `end`); a reader by
hindsight shows how good a scorer could be. “Clearly” means lower on more pairs than higher, with an exact
two-sided p below 0.05.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from core.bench.cases import KINDS
from core.bench.harness import (
    Environment,
    Journal,
    compare,
    describe,
    median,
    publish,
    quartiles,
    sign_test,
    table,
)
from core.bench.quality_tasks import DENSE, SCORELESS, TASKS, Part, hindsight
from core.errors import RequestError
from core.settings import Settings, assign
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.bench.quality_readers import Probe, Reader
    from core.models.loader import LoadedModel


_CLOSENESS_TOKENS = 64
_QUICK_SEEDS, _QUICK_WINDOWS = 3, 1


def run(options: argparse.Namespace) -> int:
    """Measure and write `trials.jsonl`, `results.json` and `report.md`."""
    # The threads of NumPy's BLAS and of MLX's spin while they wait for each other: with one thread each, a
    # reading takes two thirds of the time. Both libraries read this variable when they are loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from core.models.runtime import prepare

    blas = prepare()
    from core.bench.quality_readers import cpu_attention
    from core.models.loader import load

    started = time.perf_counter()
    with ProgressLine(options.quiet) as line:
        line.say(f"Loading {options.model}", now=True)
        loaded = load(options.model)
    _check(options, loaded)
    with tempfile.TemporaryDirectory() as scratch, cpu_attention(), ProgressLine(options.quiet) as line:
        chosen, draft = _readers(options, loaded, Path(scratch))
        trials = Journal(options.out / "trials.jsonl", _conditions(options, loaded, draft), Trial)
        for probe in _probes(options, loaded):
            label = f"{probe.part} {probe.name} {probe.seed}"
            line.say(label, now=True)
            for trial in try_readers(probe, chosen, trials):
                trials.add(trial)
                line.print(_trial_line(trial))
                line.say(label, now=True)
    results = QualityResults(
        "quality",
        describe(blas, loaded.info.dtype),
        loaded.info.name,
        options.keep,
        options.context,
        options.document_context,
        options.continuation,
        draft,
        time.perf_counter() - started,
        trials.all,
    )
    publish(options.out, results, write_report(results))
    return 0


def _listed(chosen: tuple[str, ...], every: list[str]) -> list[str]:
    return every if chosen == ("all",) else [] if chosen == ("none",) else list(chosen)


def _check(options: argparse.Namespace, loaded: LoadedModel) -> None:
    room = loaded.info.context_tokens
    longest = max(options.context, options.document_context) + options.continuation
    if longest >= room:
        raise RequestError(
            f"A prompt of {longest:,} tokens does not fit {loaded.info.name}, which takes {room:,}.",
            "Choose a shorter --context or --document-context.",
        )


def _conditions(options: argparse.Namespace, loaded: LoadedModel, draft: str) -> str:
    return (
        f"{loaded.info.name}, keep {options.keep:g}% beside what must be (its end where it goes on),"
        f" carried, context {options.context},"
        f" document {options.document_context} + {options.continuation},"
        f" draft {draft or 'none'}"
    )


def _readers(options: argparse.Namespace, loaded: LoadedModel, scratch: Path) -> tuple[list[Reader], str]:
    """The readers, dense first, and the name of the draft model (empty if none is needed)."""
    from core.bench.cases import truncated_copy
    from core.bench.quality_readers import readers
    from core.models.loader import load

    settings = assign(Settings(), "prefill.keep_pct", options.keep).prefill
    names = list(options.readers)
    if "draft-model" not in names:
        return readers(names, loaded, settings, None), ""
    if options.draft_model:
        draft = load(options.draft_model)
        return readers(names, loaded, settings, draft), draft.info.name
    draft = load(str(truncated_copy(Path(loaded.info.path), options.draft_layers, scratch / "draft")))
    return readers(names, loaded, settings, draft), f"the model's first {options.draft_layers} layers"


def _probes(options: argparse.Namespace, loaded: LoadedModel) -> Iterator[Probe]:
    """Documents first: they are the most informative. An interrupted run has covered all names by seed."""
    from core.bench.quality_readers import document_probe, passage_probe, task_probe

    seeds, windows = (_QUICK_SEEDS, _QUICK_WINDOWS) if options.quick else (options.seeds, options.windows)
    for seed in range(1, windows + 1):
        for kind in _listed(options.kinds, list(KINDS)):
            yield document_probe(loaded, kind, seed, options.document_context, options.continuation)
    for seed in range(1, windows + 1):
        for kind in _listed(options.passages, list(KINDS)):
            yield passage_probe(loaded, kind, seed, options.context, options.continuation)
    for seed in range(1, seeds + 1):
        for name in _listed(options.tasks, list(TASKS)):
            yield task_probe(loaded, name, seed, options.context)


def try_readers(probe: Probe, chosen: Sequence[Reader], done: Journal[Trial]) -> Iterator[Trial]:
    """Trials of `probe` by the readers that `done` does not have; `chosen[0]` is the dense one.

    Tasks that an earlier run read densely are not read densely again, because that takes most of the time: a
    task is judged by its own answer, so the KL and agreement of these trials stay None.
    """
    from core.bench.quality_readers import Hindsight, closeness, mean_nll

    dense, case = chosen[0], probe.case
    wanted = [reader for reader in chosen if not done.has(probe.part, probe.name, probe.seed, reader.name)]
    compared = case is None or any(reader is dense or hindsight(reader.name) for reader in wanted)
    others = [reader for reader in wanted if reader is not dense]
    full, future = None, None
    for reader in [dense, *others] if wanted and compared else others:
        session = reader.read(probe.prompt, future)
        found = session.predict(probe.gold)
        if reader is dense:
            full, future = found, Hindsight(session, probe.gold)
        if reader not in wanted:
            continue
        near = None if full is None else closeness(full[:_CLOSENESS_TOKENS], found[:_CLOSENESS_TOKENS])
        answer = session.answer(probe.answer_tokens) if case else ""
        yield Trial(
            probe.part,
            probe.name,
            probe.seed,
            reader.name,
            len(probe.prompt.ids),
            session.read_tokens,
            mean_nll(found, probe.gold),
            near.kl_nats if near else None,
            near.top1_agreement if near else None,
            case.passes(answer) if case else None,
            case.found(answer) if case else 0,
            answer,
        )


def _trial_line(trial: Trial) -> str:
    verdict = {True: "pass", False: "fail", None: ""}[trial.passed]
    near = ""
    if trial.kl_nats is not None and trial.top1_agreement is not None:
        near = f"kl {trial.kl_nats:6.3f}  agree {trial.top1_agreement:4.0%}"
    return (
        f"{trial.part:>8} {trial.name:<17} {trial.seed:3} {trial.reader:<14} read {trial.read_tokens:5,}"
        f" of {trial.prompt_tokens:5,}  nll {trial.nll:6.3f}  {near:<24}  {verdict}"
    )


# ---- result files


class Trial(Struct, frozen=True):
    """One prompt read by one reader: a line of `trials.jsonl`.

    `nll`: mean negative log-likelihood of the right continuation, in nats a token. `kl_nats` and
    `top1_agreement` compare with dense prefill over the first tokens, None if that was not read in this run.
    `passed`, `found` and `answer`: for tasks only.
    """

    part: Part
    name: str
    seed: int
    reader: str
    prompt_tokens: int
    read_tokens: int
    nll: float
    kl_nats: float | None
    top1_agreement: float | None
    passed: bool | None = None
    found: int = 0
    answer: str = ""

    @property
    def key(self) -> tuple[Part, str, int, str]:
        return self.part, self.name, self.seed, self.reader


class QualityResults(Struct, frozen=True):
    """The content of `results.json`. `took_s`: time of this run, without earlier runs that it continued."""

    bench: str
    environment: Environment
    model: str
    keep_pct: float
    context: int
    document_context: int
    continuation: int
    draft_model: str
    took_s: float
    trials: tuple[Trial, ...]


# ---- paired statistics

Measure = Literal["likelihood", "KL"]
TARGET_RATIO = 1.10
CLEAR_P = 0.05
_MAX_NATS = 50.0
# A right answer may differ from the dense one, so the KL of tasks is not compared.
_MEASURES: dict[Part, tuple[Measure, ...]] = {
    "document": ("likelihood", "KL"),
    "passage": ("likelihood", "KL"),
    "task": ("likelihood",),
}
_TITLES: dict[Part, str] = {
    "document": "Documents: perplexity of the continuation, relative to dense",
    "passage": "Passages requested by their first words: perplexity of the passage, relative to dense",
}
_ABOUT_HINDSIGHT = (
    " A reader by hindsight scored with that many of the following tokens, which no scorer has."
)


class Nearness(Struct, frozen=True):
    """One reader on `windows` documents or passages: medians of perplexity ratio to dense, KL, agreement."""

    reader: str
    windows: int
    read_share: float
    ratio: float
    ratio_low: float
    ratio_high: float
    kl_nats: float
    top1_agreement: float


class Passes(Struct, frozen=True):
    """One reader on tasks. Regressions: dense passes and it fails; improvements: the reverse.

    `likelier`: number of right answers that are more likely than with dense; `less_likely`: the reverse.
    """

    reader: str
    seeds: int
    dense: int
    passed: int
    regressions: int
    improvements: int
    likelier: int
    less_likely: int
    nll_dense: float
    nll: float

    @property
    def p(self) -> float:
        return sign_test(self.improvements, self.regressions)

    @property
    def p_likelier(self) -> float:
        return sign_test(self.likelier, self.less_likely)


class Duel(Struct, frozen=True):
    """A scorer against a baseline on the same prompts; the lower `measure` wins."""

    part: str
    measure: Measure
    scorer: str
    baseline: str
    wins: int
    losses: int
    ours: float
    theirs: float

    @property
    def p(self) -> float:
        return sign_test(self.wins, self.losses)

    @property
    def clear(self) -> bool:
        return self.wins > self.losses and self.p < CLEAR_P


def perplexity(nll: float) -> float:
    """exp of a mean negative log-likelihood in nats; bounded, so that an impossible token cannot overflow."""
    return math.exp(min(nll, _MAX_NATS))


def nearness(trials: Iterable[Trial], part: Part, reader: str, kind: str = "") -> Nearness:
    """Statistics of `reader` on documents or passages, of one `kind` or all."""
    pairs = [(d, t) for d, t in _pairs(trials, part, reader) if not kind or t.name == kind]
    ratios = [perplexity(t.nll - d.nll) for d, t in pairs]
    low, high = quartiles(ratios)
    return Nearness(
        reader,
        len(pairs),
        median(t.read_tokens / t.prompt_tokens for _, t in pairs),
        median(ratios),
        low,
        high,
        median(t.kl_nats for _, t in pairs if t.kl_nats is not None),
        median(t.top1_agreement for _, t in pairs if t.top1_agreement is not None),
    )


def passes(trials: Iterable[Trial], names: Sequence[str], reader: str) -> Passes:
    """Statistics of `reader` on the tasks in `names`."""
    pairs = [(d, t) for d, t in _pairs(trials, "task", reader) if t.name in names]
    likelier, less_likely = compare([t.nll for _, t in pairs], [d.nll for d, _ in pairs])
    return Passes(
        reader,
        len(pairs),
        sum(bool(d.passed) for d, _ in pairs),
        sum(bool(t.passed) for _, t in pairs),
        sum(bool(d.passed) and not t.passed for d, t in pairs),
        sum(bool(t.passed) and not d.passed for d, t in pairs),
        likelier,
        less_likely,
        median(d.nll for d, _ in pairs),
        median(t.nll for _, t in pairs),
    )


def duel(trials: Sequence[Trial], part: Part, scorer: str, baseline: str, measure: Measure) -> Duel:
    """`scorer` against `baseline` on all documents, passages, or tasks that do not need the whole text."""
    theirs = {t.key[:3]: _lost(t, measure) for t in trials if t.reader == baseline and _fair(t)}
    pairs = [
        (lost, other)
        for t in trials
        if t.reader == scorer and t.part == part
        if (lost := _lost(t, measure)) is not None and (other := theirs.get(t.key[:3])) is not None
    ]
    wins, losses = compare([a for a, _ in pairs], [b for _, b in pairs])
    ours, others = median(a for a, _ in pairs), median(b for _, b in pairs)
    return Duel(part, measure, scorer, baseline, wins, losses, ours, others)


def _lost(trial: Trial, measure: Measure) -> float | None:
    """In nats; None if not measured."""
    return trial.nll if measure == "likelihood" else trial.kl_nats


def _fair(trial: Trial) -> bool:
    return trial.part != "task" or not TASKS[trial.name].everything


def _pairs(trials: Iterable[Trial], part: Part, reader: str) -> list[tuple[Trial, Trial]]:
    """(dense, reader) trials of the same prompts."""
    of_part = [t for t in trials if t.part == part]
    dense = {t.key[:3]: t for t in of_part if t.reader == DENSE}
    return [(dense[t.key[:3]], t) for t in of_part if t.reader == reader and t.key[:3] in dense]


def write_report(results: QualityResults) -> str:
    """The results as Markdown."""
    trials = results.trials
    readers = list(dict.fromkeys(t.reader for t in trials if t.reader != DENSE))
    lines = [
        "# What sparse prefill costs in quality",
        "",
        f"{results.model}, keep {results.keep_pct:g}%. Passages and tasks of about {results.context:,}"
        f" prompt tokens; documents of {results.document_context:,} tokens. Of documents and passages"
        f" {results.continuation} tokens are predicted."
        " Greedy; every prompt read densely and by each reader. The end and the template are"
        " always read, so the share read is above keep.",
        "",
        results.environment.line,
        "",
    ]
    if results.draft_model:
        lines += [f"Draft model: {results.draft_model}.", ""]
    for part in _TITLES:
        lines += _texts(trials, part, readers)
    lines += [*_duels(trials, readers), *_tasks(trials, readers)]
    lines += [f"This run took {results.took_s / 60.0:.0f} minutes, without earlier runs that it continued."]
    return "\n".join(lines) + "\n"


def _texts(trials: Sequence[Trial], part: Part, readers: Sequence[str]) -> list[str]:
    kinds = list(dict.fromkeys(t.name for t in trials if t.part == part))
    if not kinds:
        return []
    lines = [
        f"## {_TITLES[part]}",
        "",
        "Ratio: median (quartiles) over all windows, then by kind. KL in nats and top-1 agreement over the"
        f" first 64 tokens. Target for scorers: a median ratio of at most {TARGET_RATIO:.2f}."
        + (_ABOUT_HINDSIGHT if any(map(hindsight, readers)) else ""),
        "",
    ]
    rows = []
    for reader in readers:
        n = nearness(trials, part, reader)
        if not n.windows:
            continue
        judged = "met" if n.ratio <= TARGET_RATIO else "**missed**"
        target = judged if _is_compared(reader) else "–"
        by_kind = " | ".join(f"{nearness(trials, part, reader, kind).ratio:.2f}" for kind in kinds)
        rows.append(
            f"{reader} | {n.windows} | {n.read_share:.0%} | **{n.ratio:.3f}** ({n.ratio_low:.2f}–"
            f"{n.ratio_high:.2f}) | {n.kl_nats:.3f} | {n.top1_agreement:.0%} | {target} | {by_kind}"
        )
    columns = f"reader | windows | read | ratio | KL | agreement | target | {' | '.join(kinds)}"
    return [*lines, *table(columns, rows), ""]


def _is_compared(reader: str) -> bool:
    """Whether `reader` is a scorer, not a baseline."""
    return reader not in SCORELESS and not hindsight(reader)


def _duels(trials: Sequence[Trial], readers: Sequence[str]) -> list[str]:
    parts = list(dict.fromkeys(t.part for t in trials))
    duels = [
        duel(trials, part, scorer, baseline, measure)
        for part in parts
        for measure in _MEASURES[part]
        for scorer in readers
        if _is_compared(scorer)
        for baseline in SCORELESS
        if baseline in readers
    ]
    duels = [duel for duel in duels if duel.wins + duel.losses]
    if not duels:
        return []
    lines = [
        "## Against no scorer, at the same keep",
        "",
        "Likelihood: negative log-likelihood, in nats a token, of the text that follows (documents), the"
        " requested passage, or the right answer (tasks that do not need the whole text). KL: from dense,"
        " over the first 64 tokens. Medians, pairs won and lost, exact two-sided sign test.",
        "",
        *table(
            "on | by | scorer | baseline | scorer's | baseline's | won | lost | p | clearly better",
            (
                f"{d.part}s | {d.measure} | {d.scorer} | {d.baseline} | {d.ours:.3f} | {d.theirs:.3f}"
                f" | {d.wins} | {d.losses} | {d.p:.2g} | {'yes' if d.clear else '**no**'}"
                for d in duels
            ),
        ),
    ]
    return [*lines, ""]


def _tasks(trials: Sequence[Trial], readers: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(t.name for t in trials if t.part == "task"))
    if not names:
        return []
    fair = [name for name in names if not TASKS[name].everything]
    whole = [name for name in names if TASKS[name].everything]
    dense = {name: passes(trials, [name], DENSE) for name in names}
    weak = [name for name in names if 2 * dense[name].dense < dense[name].seeds]
    lines = [
        "## Tasks: passed of asked, against dense",
        "",
        "In brackets regressions (dense passed, this reader not) and improvements (the other way); then the"
        " median negative log-likelihood of the right answer. Tasks with * need the whole text.",
        "",
    ]
    rows = [_row(trials, readers, f"{n}{' *' if n in whole else ''}", [n]) for n in names]
    rows += [_row(trials, readers, "**need no whole text**", fair)] if fair and whole else []
    lines += table(f"task | asked | dense | {' | '.join(readers)}", rows)
    if weak:
        lines += [
            "",
            "The model passes fewer than half densely of: " + ", ".join(weak) + ". There passes say little"
            " about sparse prefill; the likelihood of the right answer says more.",
        ]
    lines += [
        "",
        "Likelier or less so: the right answer, than after reading everything. McNemar's and sign tests,"
        " exact, two-sided.",
        "",
        *table(
            "reader | needs the whole text | asked | regressions | improvements | p | likelier | less | p",
            (
                f"{reader} | {needs} | {a.seeds} | {a.regressions} | {a.improvements} | {a.p:.2g}"
                f" | {a.likelier} | {a.less_likely} | {a.p_likelier:.2g}"
                for reader in readers
                for needs, chosen in (("no", fair), ("yes", whole))
                if (a := passes(trials, chosen, reader)).seeds
            ),
        ),
    ]
    return [*lines, ""]


def _row(trials: Sequence[Trial], readers: Sequence[str], title: str, names: Sequence[str]) -> str:
    """A table row. A reader with fewer prompts than dense shows their number."""
    dense = passes(trials, names, DENSE)
    cells = [title, str(dense.seeds), f"{dense.dense}, {dense.nll_dense:.2f}"]
    for found in (passes(trials, names, reader) for reader in readers):
        of = "" if found.seeds == dense.seeds else f" of {found.seeds}"
        cell = f"{found.passed}{of} ({found.regressions}−, {found.improvements}+), {found.nll:.2f}"
        cells.append(cell if found.seeds else "–")
    return " | ".join(cells)
