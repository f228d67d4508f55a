"""`draftlight bench tables`: what tables give, how large they should be, what saving them costs.

Parts: `conversation` (the real model, cold against warm); `learned` (the real model with and without
tables learned beforehand, on the prompts of recorded streams); on recorded streams `sizes`,
`cacheback` and `poison`, which need no model and do not drift; `timing`, saving and loading 100,000
entries. The first two take minutes and write down each piece, so the same command goes on where it
was stopped. Tables are kept in folders of their own: nobody's are touched.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from core.bench.environment import describe
from core.bench.model import use_tried
from core.bench.replay.cost_table import cost_table
from core.bench.tables.table_conversation import ColdAndWarm, Teacher, WarmRow, read_edits
from core.bench.tables.table_learned import LearnedRow, chosen, learned_rows, with_tables
from core.bench.tables.table_replay import frozen_lengths, frozen_modes, frozen_tables, poison, table_sizes
from core.bench.tables.table_report import TableResults, write_report
from core.bench.tables.table_timing import SIZES, timing
from core.errors import RequestError
from core.rehearsal.streams import Stream, read_streams
from core.settings import Settings, assign_all
from core.tables.memory import TableMemory


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`; status 1 if an answer differed from its plain one."""
    parts = options.parts
    from core.models.runtime.runtime import prepare

    blas = prepare()
    streams = read_streams(options.streams) if options.streams else []
    costs = [cost_table("cpu"), cost_table("apple")]
    frozen = frozen_tables(options.frozen) if "cacheback" in parts else {}
    options.out.mkdir(parents=True, exist_ok=True)
    results = TableResults(
        "tables",
        describe(blas),
        options.streams.name if options.streams else "",
        tuple(_conversation(options)) if "conversation" in parts else (),
        tuple(_learned(options, streams)) if "learned" in parts else (),
        tuple(table_sizes(streams, costs[0])) if "sizes" in parts else (),
        tuple(path.name for path in options.frozen),
        tuple(frozen_modes(streams, costs, frozen)) if "cacheback" in parts else (),
        tuple(frozen_lengths(streams, costs, frozen)) if "cacheback" in parts else (),
        tuple(poison(streams, costs)) if "poison" in parts else (),
        tuple(timing(slots) for slots in SIZES) if "timing" in parts else (),
    )
    (options.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    report = write_report(results)
    (options.out / "report.md").write_text(report, encoding="utf-8")
    print(report)
    equal = [row.equal for row in results.conversation] + [row.equal for row in results.learned]
    return 0 if all(equal) else 1


def _conversation(options: argparse.Namespace) -> Iterator[WarmRow]:
    from core.bench.truncated import rounded_copy, without_layers
    from core.engine.engine import Engine
    from core.models.loader import LoadedModel, load

    wanted = options.warmed_by
    drafters = options.drafters
    loaded = load(options.model)
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
        conditions = f"{loaded.info.name}, {options.max_tokens} tokens an answer"
        if options.conversation:
            conditions += f", {options.conversation.name}"
        bench = ColdAndWarm(options.out, conditions, engine_on, edits)
        for drafter in drafters:
            settings = assign_all(
                Settings(), [("drafting.drafter", drafter), ("sampling.max_tokens", options.max_tokens)]
            )
            for pair in bench.measure(teachers, settings, cost_table("cpu"), options.pairs):
                print(
                    f"{pair.drafter}, {pair.warmed_by}, pair {pair.number + 1}", file=sys.stderr, flush=True
                )
        for drafter in drafters:
            yield from bench.rows(drafter)


def _learned(options: argparse.Namespace, streams: Sequence[Stream]) -> Iterator[LearnedRow]:
    from core.engine.engine import Engine

    engine = Engine()
    engine.load(options.model)
    engine.try_out()
    prompts = chosen(streams, options.each)
    path = options.out / "learned.jsonl"
    yield from learned_rows(list(with_tables(engine, prompts, options.max_tokens, options.pairs, path)))
