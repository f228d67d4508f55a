"""`draftlight bench tables`: what tables give, how large they should be, what saving them costs.

Parts: `conversation` (the real model, cold against warm); `learned` (the real model with and without
tables learned beforehand, on the prompts of recorded streams); on recorded streams `sizes`,
`cacheback` and `poison`, which need no model and do not drift; `timing`, saving and loading 100,000
entries. Each part writes down its pieces in a file of its own, so the same command goes on where it
was stopped. Tables are kept in folders of their own: nobody's are touched.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from core.bench.environment import Environment, describe
from core.bench.journal import Entry, Journal
from core.bench.model import use_tried
from core.bench.pieces import BenchPiece, PieceProgress, conditions, measure, of_run
from core.bench.prompts import fingerprint
from core.bench.replay.cost_table import cost_table
from core.bench.results_folder import write_results
from core.bench.tables.table_conversation import ColdAndWarm, Teacher, WarmPair, WarmRow, read_edits
from core.bench.tables.table_learned import LearnedRound, LearnedRow, chosen, learned_rows, with_tables
from core.bench.tables.table_replay import (
    FrozenRow,
    PoisonRow,
    SizeRow,
    frozen_lengths,
    frozen_modes,
    frozen_tables,
    poison,
    table_sizes,
)
from core.bench.tables.table_report import TableResults, write_report
from core.bench.tables.table_timing import TimingRow, timings
from core.errors import RequestError
from core.rehearsal.streams import Stream, read_streams
from core.settings import Settings, assign_all
from core.system.progress_line import ProgressLine
from core.tables.memory import TableMemory

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.engine.engine import Engine
    from core.models.loader import LoadedModel

E = TypeVar("E", bound=Entry)


def run(options: argparse.Namespace) -> int:
    """Measure; writes each part's file, `results.json`, `report.md`. 1 if an answer differed from plain."""
    from core.models.runtime.runtime import prepare

    blas = prepare()
    streams = read_streams(options.streams) if options.streams else []
    costs = [cost_table("cpu"), cost_table("apple")]
    frozen = frozen_tables(options.frozen) if "cacheback" in options.parts else {}
    loaded = _load(options)
    environment = describe(blas, loaded.info.dtype if loaded else "")
    parts = _Parts(options, environment)
    results = TableResults(
        "tables",
        environment,
        options.streams.name if options.streams else "",
        PieceProgress(0, 0),
        _conversation(parts, loaded) if loaded and parts.wants("conversation") else (),
        _learned(parts, loaded, chosen(streams, options.each)) if loaded and parts.wants("learned") else (),
        parts.measured("sizes", SizeRow, lambda: table_sizes(streams, costs[0])),
        tuple(path.name for path in options.frozen),
        parts.measured("cacheback", FrozenRow, lambda: frozen_modes(streams, costs, frozen), "modes"),
        parts.measured("cacheback", FrozenRow, lambda: frozen_lengths(streams, costs, frozen), "lengths"),
        parts.measured("poison", PoisonRow, lambda: poison(streams, costs)),
        parts.measured("timing", TimingRow, timings),
    )
    results = replace(results, progress=parts.progress)
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    equal = [row.equal for row in results.conversation] + [row.equal for row in results.learned]
    return parts.progress.status(all(equal))


class _Parts:
    """Runs the parts that are wanted, each with a journal of its own, until Ctrl-C ends one."""

    def __init__(self, options: argparse.Namespace, environment: Environment) -> None:
        self.options = options
        self.progress = PieceProgress(0, 0)
        files = [path for path in (options.streams, *options.frozen, options.conversation) if path]
        self._told = conditions(environment, *(f"{path.name} {fingerprint(path)}" for path in files))

    def wants(self, part: str) -> bool:
        return part in self.options.parts

    def measured(
        self,
        part: str,
        kind: type[E],
        pieces: Callable[[], Sequence[BenchPiece[E]]],
        name: str = "",
        told: str = "",
        say: Callable[[E], Iterable[str]] = lambda entry: (),
    ) -> tuple[E, ...]:
        """What is measured of the `pieces` of `part`; its file is named after it or `name`."""
        if not self.wants(part):
            return ()
        journal = Journal(self.options.out / f"{name or part}.jsonl", f"{self._told}; {told}", kind)
        chosen = pieces()
        if self.progress.whole:
            now = measure(journal, chosen, say, quiet=self.options.quiet)
        else:
            now = PieceProgress(sum(journal.has(*piece.key) for piece in chosen), len(chosen))
        self.progress = PieceProgress(self.progress.done + now.done, self.progress.total + now.total)
        return tuple(of_run(journal, chosen))


def _load(options: argparse.Namespace) -> LoadedModel | None:
    """The model, if a part needs one."""
    if not {"conversation", "learned"} & set(options.parts):
        return None
    from core.models.loader import load

    with ProgressLine(options.quiet) as line:
        line.say(f"Loading {options.model}", now=True)
        return load(options.model)


def _conversation(parts: _Parts, loaded: LoadedModel) -> tuple[WarmRow, ...]:
    from core.bench.truncated import rounded_copy, without_layers
    from core.engine.engine import Engine
    from core.models.loader import load

    options = parts.options
    wanted = options.warmed_by
    edits = read_edits(options.conversation)

    def with_model(model: LoadedModel, memory: TableMemory) -> Engine:
        return use_tried(Engine(memory), model)

    engine_on = partial(with_model, loaded)
    with tempfile.TemporaryDirectory() as scratch:
        teachers = []
        if "same" in wanted:
            teachers.append(Teacher("the same questions", engine_on, edits.turns))
        if "earlier" in wanted:
            teachers.append(Teacher("other questions", engine_on, edits.earlier))
        # Other models of the family: one that says nearly the same, and one that does not.
        whole = Path(loaded.info.path)
        others = []
        if "rounded" in wanted:
            name = f"a copy of {options.bits} bits a weight"
            others.append((name, rounded_copy(whole, options.bits, Path(scratch) / "rounded")))
        if "thinned" in wanted:
            layer = loaded.info.layers // 2 if options.without_layer is None else options.without_layer
            name = f"a copy without layer {layer}"
            others.append((name, without_layers(whole, {layer}, Path(scratch) / "thinned")))
        for reference in options.teacher:
            others.append((reference, Path(reference)))
        for name, path in others:
            other = load(str(path))
            if other.info.family != loaded.info.family:
                raise RequestError(
                    f"{name} has another tokenizer ({other.info.family_name}) than {loaded.info.name}"
                    f" ({loaded.info.family_name}).",
                    "Choose a --teacher of the same family: a table's ids mean nothing to another one.",
                )
            engine_of_other = partial(with_model, other)
            teachers.append(Teacher(f"the same questions, by {name}", engine_of_other, edits.turns))
        bench = ColdAndWarm(options.out, engine_on, edits)
        common = ("sampling.max_tokens", options.max_tokens)
        pieces = [
            piece
            for drafter in options.drafters
            for piece in bench.pieces(
                teachers,
                assign_all(Settings(), [("drafting.drafter", drafter), common]),
                cost_table("cpu"),
                options.pairs,
            )
        ]
        pairs = parts.measured(
            "conversation",
            WarmPair,
            lambda: pieces,
            told=f"{loaded.info.name}, {options.max_tokens} tokens an answer",
            say=lambda pair: [f"{pair.drafter}, {pair.warmed_by}, pair {pair.number + 1}"],
        )
    return tuple(bench.rows(pairs))


def _learned(
    parts: _Parts, loaded: LoadedModel, prompts: Sequence[tuple[int, Stream]]
) -> tuple[LearnedRow, ...]:
    from core.engine.engine import Engine

    options = parts.options
    engine = use_tried(Engine(), loaded)
    rounds = parts.measured(
        "learned",
        LearnedRound,
        lambda: with_tables(engine, prompts, options.max_tokens, options.pairs),
        told=f"{loaded.info.name}, {options.max_tokens} tokens an answer",
    )
    return tuple(learned_rows(rounds))
