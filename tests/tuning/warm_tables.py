"""Decode speed of a conversation of edits with cold and with warm tables.

    python -m tests.tuning warm-tables --out DIR

A warm run is a real warm start: one engine learns, saves and closes; another one loads the tables and
answers. Both start without a reusable prefix, alternate in order, and must give equal answers. The table is
warmed by the same questions, by other questions, or by another model of the family: copies with rounded
weights or without a layer, or `--teacher`. An interrupted run continues with the next pair.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from core.bench.cases import write_copy
from core.bench.runner import Bench, BenchPiece, describe, file_label, read_input, run_bench, table
from core.errors import RequestError
from core.events import Finished, Generate, Message, Token
from core.settings import Settings, assign_all
from core.system.terminal import ProgressLine
from core.tables.files import TableFolder
from core.tables.memory import TableMemory
from tests.tuning.replay import COST_TABLES, CostTable

if TYPE_CHECKING:  # importing these loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine
    from core.models.loader import LoadedModel

# Weights that share a scale, as in mlx-lm.
_GROUP = 64
_LAYER = re.compile(r"\.layers\.(\d+)\.")


class Edits(Struct, frozen=True, forbid_unknown_fields=True):
    """A file, requests to change it (`turns`), and other requests made before (`earlier`).

    Without a `file`, the requests after the first change its answer.
    """

    name: str
    file: str
    turns: tuple[str, ...]
    earlier: tuple[str, ...]


class TableTurn(Struct, frozen=True):
    """One answer. `cost` is the cost of its steps by the `cpu` cost table, with mean draft lengths."""

    tokens: tuple[int, ...]
    accepted: int
    tested: int
    steps: int
    decode_s: float
    cost: float


class WarmPair(Struct, frozen=True):
    """One conversation without and with a warm table."""

    drafter: str
    warmed_by: str
    number: int
    cold: tuple[TableTurn, ...]
    warm: tuple[TableTurn, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        return self.drafter, self.warmed_by, self.number


class WarmRow(Struct, frozen=True):
    """One way to warm the table, medians over pairs. Turn 0 is the whole conversation.

    `speed_up` is by the clock, `steps_saved` by the cost table.
    """

    drafter: str
    warmed_by: str
    turn: int
    pairs: int
    tokens: int
    cold_acceptance: float
    warm_acceptance: float
    cold_accepted: int
    warm_accepted: int
    cold_tokens_per_s: float
    warm_tokens_per_s: float
    speed_up: float
    steps_saved: float
    equal: bool


def run(options: argparse.Namespace) -> int:
    """Measure and write `warm-tables.jsonl` and `.md`; status 1 if an answer differed."""
    from core.models.runtime import prepare

    blas = prepare()
    from core.models.loader import load

    edits = read_edits(options.conversation)
    with ProgressLine(options.quiet) as line, tempfile.TemporaryDirectory() as scratch:
        line.say(f"Loading {options.model}", now=True)
        loaded = load(options.model)
        teachers = _teachers(options, loaded, edits, Path(scratch))
        line.clear()
        tool = ColdAndWarm(options.out, partial(_engine, loaded), edits)
        length = ("sampling.max_tokens", options.max_tokens)
        pieces = [
            piece
            for drafter in options.drafters
            for piece in tool.pieces(
                teachers,
                assign_all(Settings(), [("drafting.drafter", drafter), length]),
                COST_TABLES["cpu"],
                options.pairs,
            )
        ]
        file = file_label(options.conversation or Path(__file__).with_name("edits.json"))
        conditions = (file, f"{loaded.info.name}, {options.max_tokens} tokens an answer")
        title = f"Cold and warm tables: a conversation of edits, {loaded.info.name}"
        environment = describe(blas, loaded.info.dtype)
        bench = Bench("warm-tables", title, environment, conditions, WarmPair, options.out)
        measured, progress = run_bench(
            bench, pieces, _line, lambda pairs: report(rows_of(pairs)), quiet=options.quiet
        )
    return progress.status(all(row.equal for row in rows_of(measured)))


def _line(pair: WarmPair) -> str:
    return f"{pair.drafter}, {pair.warmed_by}, pair {pair.number + 1}"


def _engine(model: LoadedModel, memory: TableMemory) -> Engine:
    from core.engine.engine import Engine

    engine = Engine(memory)
    engine.use(model)
    engine.try_out()  # without it, trees are not used
    return engine


def _teachers(options: argparse.Namespace, loaded: LoadedModel, edits: Edits, scratch: Path) -> list[Teacher]:
    from core.models.loader import load

    wanted = options.warmed_by
    teachers = []
    if "same" in wanted:
        teachers.append(Teacher("the same questions", partial(_engine, loaded), edits.turns))
    if "earlier" in wanted:
        teachers.append(Teacher("other questions", partial(_engine, loaded), edits.earlier))
    folder = Path(loaded.info.path)
    others = [(reference, Path(reference)) for reference in options.teacher]
    if "rounded" in wanted:
        name = f"a copy of {options.bits} bits a weight"
        others.append((name, rounded_copy(folder, options.bits, scratch / "rounded")))
    if "thinned" in wanted:
        layer = loaded.info.layers // 2 if options.without_layer is None else options.without_layer
        others.append((f"a copy without layer {layer}", without_layer(folder, layer, scratch / "thinned")))
    for name, path in others:
        other = load(str(path))
        if other.info.family != loaded.info.family:
            raise RequestError(
                f"{name} has another tokenizer ({other.info.family_name}) than {loaded.info.name}"
                f" ({loaded.info.family_name}).",
                "Choose a --teacher of the same family.",
            )
        teachers.append(Teacher(f"the same questions, by {name}", partial(_engine, other), edits.turns))
    return teachers


def read_edits(path: Path | None = None) -> Edits:
    """A conversation from a JSON file (default `edits.json`). Raises `RequestError`."""
    path = path or Path(__file__).with_name("edits.json")
    try:
        edits = msgspec.json.decode(read_input(path), type=Edits)
    except msgspec.DecodeError as error:
        raise RequestError(
            f"{path} holds no conversation: {error}.", "See edits.json for an example."
        ) from error
    if not edits.turns:
        raise RequestError(f"{path} has no requests.", "Add at least one to “turns”.")
    return edits


class Teacher(Struct, frozen=True):
    """A model and the questions with which it warms a table."""

    name: str
    engine_on: Callable[[TableMemory], Engine]
    questions: tuple[str, ...]


class ColdAndWarm:
    """Pairs of conversations; the warm tables are kept in `folder`.

    `engine_on` makes an engine with the measured model and a given table memory.
    """

    def __init__(self, folder: Path, engine_on: Callable[[TableMemory], Engine], edits: Edits) -> None:
        self._folder = folder
        self._engine_on = engine_on
        self._edits = edits

    def pieces(
        self, teachers: Sequence[Teacher], settings: Settings, cost: CostTable, pairs: int
    ) -> list[BenchPiece[WarmPair]]:
        """`pairs` pairs with each teacher."""
        return [
            BenchPiece(
                (settings.drafting.drafter, teacher.name, number),
                partial(self._pair, teacher, settings, cost, number),
            )
            for number in range(pairs)
            for teacher in teachers
        ]

    def _pair(self, teacher: Teacher, settings: Settings, cost: CostTable, number: int) -> WarmPair:
        home = self._taught(teacher, settings, cost)
        runs = {}
        for warm in (False, True) if number % 2 == 0 else (True, False):
            runs[warm] = tuple(self._run(TableFolder(home) if warm else None, settings, cost))
        return WarmPair(settings.drafting.drafter, teacher.name, number, runs[False], runs[True])

    def _taught(self, teacher: Teacher, settings: Settings, cost: CostTable) -> Path:
        """The folder with the warm tables; created atomically."""
        home = self._folder / "warmed" / settings.drafting.drafter / teacher.name.replace(" ", "-")
        if not home.is_dir():
            home.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
                engine = teacher.engine_on(TableMemory(TableFolder(Path(scratch) / "learned")))
                list(converse(engine, self._edits, teacher.questions, settings, cost))
                engine.close()
                (Path(scratch) / "learned").rename(home)
        return home

    def _run(self, folder: TableFolder | None, settings: Settings, cost: CostTable) -> Iterator[TableTurn]:
        engine = self._engine_on(TableMemory(folder))
        yield from converse(engine, self._edits, self._edits.turns, settings, cost)
        if folder is not None:
            # Not closed, so that nothing is saved and each run starts with the same table.
            folder.unlock(engine.loaded.info.family)


def converse(
    engine: Engine, edits: Edits, questions: Sequence[str], settings: Settings, cost: CostTable
) -> Iterator[TableTurn]:
    """The answers to all questions, starting with an empty prefix cache."""
    engine.forget()
    messages: list[Message] = []
    for question in questions:
        if not messages and edits.file:
            question = f"This is the file {edits.name}:\n\n```python\n{edits.file}```\n\n{question}"
        messages.append(Message("user", question))
        tokens: list[Token] = []
        finished: Finished | None = None
        for event in engine.generate(Generate("bench", tuple(messages), settings)):
            if isinstance(event, Token):
                tokens.append(event)
            elif isinstance(event, Finished):
                finished = event
        assert finished is not None
        messages.append(Message("assistant", "".join(token.text for token in tokens)))
        stats = finished.stats
        drafted = stats.drafted / max(1, stats.bonus)
        spent = stats.normal + stats.bonus * cost.cost(round(1 + drafted))
        ids = tuple(token.id for token in tokens)
        yield TableTurn(ids, stats.accepted, stats.tested, stats.steps, stats.decode_s, spent)


def rows_of(pairs: Sequence[WarmPair]) -> Iterator[WarmRow]:
    """For each drafter and teacher one row per turn, and one for all turns."""
    for drafter, name in dict.fromkeys((pair.drafter, pair.warmed_by) for pair in pairs):
        held = [pair for pair in pairs if (pair.drafter, pair.warmed_by) == (drafter, name)]
        for turn in range(len(held[0].cold) + 1):
            yield _row(drafter, name, turn, held)


def _row(drafter: str, name: str, turn: int, pairs: Sequence[WarmPair]) -> WarmRow:
    cut = slice(turn - 1, turn) if turn else slice(None)
    runs = [(_joined(pair.cold[cut]), _joined(pair.warm[cut])) for pair in pairs]
    cold, warm = runs[0]
    return WarmRow(
        drafter,
        name,
        turn,
        len(pairs),
        len(warm.tokens),
        cold.accepted / cold.tested if cold.tested else 0.0,
        warm.accepted / warm.tested if warm.tested else 0.0,
        cold.accepted,
        warm.accepted,
        median(_speed(cold) for cold, _ in runs),
        median(_speed(warm) for _, warm in runs),
        median(cold.decode_s / warm.decode_s for cold, warm in runs),
        median(cold.cost / warm.cost for cold, warm in runs),
        all(cold.tokens == warm.tokens for cold, warm in runs),
    )


def _joined(turns: Sequence[TableTurn]) -> TableTurn:
    return TableTurn(
        tuple(token for turn in turns for token in turn.tokens),
        sum(turn.accepted for turn in turns),
        sum(turn.tested for turn in turns),
        sum(turn.steps for turn in turns),
        sum(turn.decode_s for turn in turns),
        sum(turn.cost for turn in turns),
    )


def _speed(turn: TableTurn) -> float:
    return len(turn.tokens) / turn.decode_s if turn.decode_s else 0.0


# ---- other models of the family


def without_layer(folder: Path, gone: int, target: Path) -> Path:
    """Write a copy of a model without one layer; its answers differ, but make sense."""
    config = _config(folder)
    weights = {}
    for key, weight in _weights(folder).items():
        found = _LAYER.search(key)
        layer = int(found[1]) if found else -1
        if layer != gone:
            weights[_LAYER.sub(f".layers.{layer - (layer > gone)}.", key)] = weight
    count = config["num_hidden_layers"] - 1
    changes = {"num_hidden_layers": count, "draftlight_name": f"without layers {gone}"}
    return write_copy(folder, target, weights, config | changes)


def rounded_copy(folder: Path, bits: int, target: Path) -> Path:
    """Write a copy of a model whose matrices are rounded to `bits` bits a weight; its answers are similar."""
    import mlx.core as mx

    config = _config(folder)
    stored = config.pop("quantization", None) or config.pop("quantization_config", None) or {}
    weights = _weights(folder)
    dense = {}
    for key, weight in weights.items():
        stem = key.removesuffix(".weight")
        if key.endswith((".scales", ".biases")):
            continue
        if f"{stem}.scales" in weights:
            scales, biases = weights[f"{stem}.scales"], weights[f"{stem}.biases"]
            group = stored["group_size"]
            # Modules may differ in their number of bits; the length of a packed row gives it.
            packed_bits = weight.shape[-1] * 32 // (scales.shape[-1] * group)
            weight = mx.dequantize(weight, scales, biases, group, packed_bits)
        if weight.ndim == 2 and weight.shape[-1] % _GROUP == 0:
            packed = mx.quantize(weight, _GROUP, bits)
            weight = mx.dequantize(*packed, _GROUP, bits).astype(weight.dtype)
        dense[key] = weight
    return write_copy(folder, target, dense, config | {"draftlight_name": f"{bits} bits a weight"})


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config


def _weights(folder: Path) -> dict[str, Any]:
    """All arrays of the model by name."""
    import mlx.core as mx

    weights: dict[str, Any] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        loaded = mx.load(str(path))
        assert isinstance(loaded, dict)
        weights |= loaded
    return weights


# ---- report


def report(rows: Iterable[WarmRow]) -> list[str]:
    """The results as Markdown."""
    return [
        "Turn 0 is the whole conversation. “cost” is the speed-up by the CPU's cost table.",
        "",
        *table(
            "drafter | table warmed by | turn | pairs | tokens | accepted cold | warm | tok/s cold | warm"
            " | speed-up | cost | output",
            (
                f"{row.drafter} | {row.warmed_by} | {row.turn} | {row.pairs} | {row.tokens}"
                f" | {row.cold_acceptance:.0%} ({row.cold_accepted})"
                f" | {row.warm_acceptance:.0%} ({row.warm_accepted}) | {row.cold_tokens_per_s:.1f}"
                f" | {row.warm_tokens_per_s:.1f} | {row.speed_up:.2f} | {row.steps_saved:.2f}"
                f" | {'equal' if row.equal else '**different**'}"
                for row in rows
            ),
        ),
    ]
