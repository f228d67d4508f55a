"""`draftlight bench quality`: what sparse prefill costs in answers and likelihoods, paired with dense.

Question: where the model answers rightly after reading everything, does it still after reading
`keep` of it; how much worse are given texts predicted, where a document just goes on and where a
passage of it is asked for; and is a scorer better than no scorer (random passages; the head and the
tail; the end), at the same keep? All prompts are generated from seeds (`core.bench.quality.probes`). Every
prompt is read densely once and then by each reader; every trial is written to `trials.jsonl` at
once, and a run that was stopped goes on from there.

A regression counts only where dense passes. Tests are exact and paired: McNemar's for passes, a
sign test for likelihoods.
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
from core.bench.harness import Journal, describe, write_results
from core.bench.quality.reader_names import hindsight
from core.bench.quality.results import QualityResults
from core.bench.quality.tasks import TASKS, task
from core.bench.quality.trial import Trial
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
    names = [task(name).name for name in _listed(options.tasks, list(TASKS))]
    kinds = _listed(options.kinds, list(KINDS))
    asked = _listed(options.passages, list(KINDS))
    # NumPy's BLAS and MLX's wait for each other's threads by spinning: with one each a reading takes
    # two thirds of the time, and a second run beside it costs nothing. Both look at this as they are loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.bench.prefill.cpu_attention import cpu_attention
    from core.models.loader import load

    started = time.perf_counter()
    with ProgressLine(options.quiet) as line:
        line.say(f"Loading {options.model}", now=True)
        loaded = load(options.model)
    _check(options, loaded)
    with tempfile.TemporaryDirectory() as scratch, cpu_attention(), ProgressLine(options.quiet) as line:
        chosen, draft = _readers(options, loaded, Path(scratch))
        trials = Journal(options.out / "trials.jsonl", _conditions(options, loaded, draft), Trial)
        for probe in _probes(options, loaded, kinds, asked, names):
            told = f"{probe.part} {probe.name} {probe.seed}"
            line.say(told, now=True)
            for trial in try_readers(probe, chosen, trials):
                trials.add(trial)
                line.print(_row(trial))
                line.say(told, now=True)
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
    from core.bench.quality.report import write_report

    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
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
    """The readers, dense first, and what the draft model is called (empty if none is needed)."""
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


def _probes(
    options: argparse.Namespace,
    loaded: LoadedModel,
    kinds: Sequence[str],
    asked: Sequence[str],
    names: Sequence[str],
) -> Iterator[Probe]:
    """Documents first: they say most. Seeds outermost, so that a run stopped early covers all names."""
    from core.bench.quality.probes import document_probe, passage_probe, task_probe

    seeds, windows = (_QUICK_SEEDS, _QUICK_WINDOWS) if options.quick else (options.seeds, options.windows)
    for seed in range(1, windows + 1):
        for kind in kinds:
            yield document_probe(loaded, kind, seed, options.document_context, options.continuation)
    for seed in range(1, windows + 1):
        for kind in asked:
            yield passage_probe(loaded, kind, seed, options.context, options.continuation)
    for seed in range(1, seeds + 1):
        for name in names:
            yield task_probe(loaded, name, seed, options.context)


def try_readers(probe: Probe, chosen: Sequence[Reader], done: Journal[Trial]) -> Iterator[Trial]:
    """Dense first, to compare with; then every reader that has not been tried yet.

    A question that was read densely in an earlier run is not read so again, which takes most of the
    time: what such a trial is judged by is its own answer, and its KL and agreement stay None.
    """
    from core.bench.quality.likelihood import closeness, mean_nll
    from core.bench.quality.readers import Ahead

    dense, case = chosen[0], probe.case
    wanted = [reader for reader in chosen if not done.has(probe.part, probe.name, probe.seed, reader.name)]
    compared = case is None or any(reader is dense or hindsight(reader.name) for reader in wanted)
    others = [reader for reader in wanted if reader is not dense]
    full, ahead = None, None
    for reader in [dense, *others] if wanted and compared else others:
        session = reader.read(probe.prompt, ahead)
        found = session.predict(probe.gold)
        if reader is dense:
            full, ahead = found, Ahead(session, probe.gold)
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
