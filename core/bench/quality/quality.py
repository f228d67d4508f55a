"""`draftlight bench quality`: the effect of sparse prefill on answers and likelihoods, relative to dense.

Three questions: does the model still answer tasks correctly; how much less likely are the continuation of a
document and a requested passage of it; and does a scorer beat baselines without a score at the same keep?
All prompts are generated from seeds (`core.bench.quality.probes`). Every prompt is read densely and then by
each reader. Trials are appended to `trials.jsonl`, so an interrupted run continues.

A regression counts only where dense passes. Tests are exact and paired: McNemar's for passes, a sign test for
likelihoods.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.bench.documents import KINDS
from core.bench.harness import Journal, describe, publish
from core.bench.quality.results import QualityResults, Trial, hindsight, write_report
from core.bench.quality.tasks import TASKS
from core.errors import RequestError
from core.settings import Settings, assign
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.bench.quality.probes import Probe
    from core.bench.quality.readers import Reader
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
    from core.bench.quality.cpu_attention import cpu_attention
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
                line.print(_row(trial))
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
    from core.bench.quality.readers import readers
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
    from core.bench.quality.probes import document_probe, passage_probe, task_probe

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
    from core.bench.quality.readers import Hindsight, closeness, mean_nll

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


def _row(trial: Trial) -> str:
    verdict = {True: "pass", False: "fail", None: ""}[trial.passed]
    near = ""
    if trial.kl_nats is not None and trial.top1_agreement is not None:
        near = f"kl {trial.kl_nats:6.3f}  agree {trial.top1_agreement:4.0%}"
    return (
        f"{trial.part:>8} {trial.name:<17} {trial.seed:3} {trial.reader:<14} read {trial.read_tokens:5,}"
        f" of {trial.prompt_tokens:5,}  nll {trial.nll:6.3f}  {near:<24}  {verdict}"
    )
