"""Cold against warm, with the real model: edits of one text, with and without what was learned.

Question (the ngram-mod article): how much faster is a conversation whose tables have seen such text before,
in its first turn and as a whole? Every warm run is a real warm start: a first engine learns, saves to
disk and ends; a second one loads the tables and answers. Both start with no reusable prefix; which
of a pair comes first alternates, and the answers must be the same.

A pair is written down as soon as it is measured, and what was learned stays on disk, so a run that
was stopped goes on with the next pair.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from core.bench.pieces import BenchPiece
from core.bench.replay.cost_table import CostTable
from core.errors import RequestError
from core.events import Finished, Generate, Message, Token
from core.settings import Settings
from core.system.paths import resources_dir
from core.tables.folder import TableFolder
from core.tables.memory import TableMemory

if TYPE_CHECKING:  # importing it loads MLX, which a bench must prepare first
    from core.engine.engine import Engine


class Edits(Struct, frozen=True, forbid_unknown_fields=True):
    """A file and its name, requests to change it, and other ones that somebody made before.

    Without a `file` the first request stands alone, and the others change its answer.
    """

    name: str
    file: str
    turns: tuple[str, ...]
    earlier: tuple[str, ...]


class TableTurn(Struct, frozen=True):
    """One answer. `cost` is what its steps cost at a named table, in plain steps: it does not drift.

    Drafts count there as if all of an answer's had their mean length.
    """

    tokens: tuple[int, ...]
    accepted: int
    tested: int
    steps: int
    decode_s: float
    cost: float


class WarmPair(Struct, frozen=True):
    """One conversation cold and the same one warm, the `number`th pair of its kind."""

    drafter: str
    warmed_by: str
    number: int
    cold: tuple[TableTurn, ...]
    warm: tuple[TableTurn, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        return self.drafter, self.warmed_by, self.number


class WarmRow(Struct, frozen=True):
    """One way to warm the table, against cold, medians over pairs. Turn 0 is the whole conversation.

    `speed_up` is that of the clock, `steps_saved` that of the cost table.
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


def read_edits(path: Path | None = None) -> Edits:
    """A conversation from a file, or Draftlight's own edits of one file. Raises `RequestError`."""
    path = path or resources_dir() / "bench" / "edits.json"
    try:
        edits = msgspec.json.decode(path.read_bytes(), type=Edits)
    except OSError as error:
        raise RequestError(f"{path} could not be read: {error.strerror}.", "Choose another file.") from error
    except msgspec.DecodeError as error:
        raise RequestError(
            f"{path} holds no conversation: {error}.", "See resources/bench/edits.json."
        ) from error
    if not edits.turns:
        raise RequestError(f"{path} asks nothing.", "Give it at least one of “turns”.")
    return edits


class Teacher(Struct, frozen=True):
    """Who warms a table, and by which questions about the file."""

    name: str
    engine_on: Callable[[TableMemory], Engine]
    questions: tuple[str, ...]


class ColdAndWarm:
    """Pairs of conversations, kept in `folder` with the tables that warm them.

    `engine_on` gives an engine with the model that is measured.
    """

    def __init__(self, folder: Path, engine_on: Callable[[TableMemory], Engine], edits: Edits) -> None:
        self._folder = folder
        self._engine_on = engine_on
        self._edits = edits

    def pieces(
        self, teachers: Sequence[Teacher], settings: Settings, cost: CostTable, pairs: int
    ) -> list[BenchPiece[WarmPair]]:
        """So many pairs with each teacher."""
        return [
            BenchPiece(
                (settings.drafting.drafter, teacher.name, number),
                partial(self._pair, teacher, settings, cost, number),
            )
            for number in range(pairs)
            for teacher in teachers
        ]

    def rows(self, pairs: Sequence[WarmPair]) -> Iterator[WarmRow]:
        """For each drafter and teacher one row a turn, one for all."""
        for drafter, name in dict.fromkeys((pair.drafter, pair.warmed_by) for pair in pairs):
            held = [pair for pair in pairs if (pair.drafter, pair.warmed_by) == (drafter, name)]
            for turn in range(len(self._edits.turns) + 1):
                yield _row(drafter, name, turn, held)

    def _pair(self, teacher: Teacher, settings: Settings, cost: CostTable, number: int) -> WarmPair:
        home = self._taught(teacher, settings, cost)
        runs = {}
        for warm in (False, True) if number % 2 == 0 else (True, False):
            runs[warm] = tuple(self._run(TableFolder(home) if warm else None, settings, cost))
        return WarmPair(settings.drafting.drafter, teacher.name, number, runs[False], runs[True])

    def _taught(self, teacher: Teacher, settings: Settings, cost: CostTable) -> Path:
        """The folder with what was learned, whole or not there."""
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
            # Never closed, so what is learned now is not saved: each run starts with the same table.
            folder.unlock(engine.loaded.info.family)


def converse(
    engine: Engine, edits: Edits, questions: Sequence[str], settings: Settings, cost: CostTable
) -> Iterator[TableTurn]:
    """The answers to all questions, from an empty cache."""
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
