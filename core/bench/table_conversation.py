"""Cold against warm, with the real model: four edits of one file, with and without what was learned.

Question (seed 001): how much faster is a conversation whose tables have seen such text before, in
its first turn and as a whole? Every warm run is a real warm start: a first engine learns, saves to
disk and ends; a second one loads the tables and answers. Both start with no reusable prefix; runs
alternate, and the answers must be the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from core.bench.cost_table import CostTable
from core.events import Finished, Generate, Message, Token
from core.paths import resources_dir
from core.settings import Settings
from core.tables.folder import TableFolder
from core.tables.memory import TableMemory

if TYPE_CHECKING:  # importing it loads MLX, which a bench must prepare first
    from core.engine import Engine


class Edits(Struct, frozen=True):
    """A file, four requests to change it, and four other ones that somebody made before."""

    file: str
    turns: tuple[str, ...]
    earlier: tuple[str, ...]


class Turn(Struct, frozen=True):
    """One answer. `cost` is what its steps cost at a named table, in plain steps: it does not drift.

    Drafts count there as if all of an answer's had their mean length.
    """

    tokens: tuple[int, ...]
    accepted: int
    tested: int
    steps: int
    decode_s: float
    cost: float


class WarmRow(Struct, frozen=True):
    """One way to warm the table, against cold, medians over pairs. Turn 0 is the whole conversation.

    `speed_up` is that of the clock, `steps_saved` that of the cost table.
    """

    drafter: str
    warmed_by: str
    turn: int
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


def read_edits() -> Edits:
    """Draftlight's own."""
    return msgspec.json.decode((resources_dir() / "bench" / "edits.json").read_bytes(), type=Edits)


def cold_and_warm(
    engine_on: Callable[[TableMemory], Engine],
    teachers: Mapping[str, tuple[Callable[[TableMemory], Engine], Sequence[str]]],
    edits: Edits,
    settings: Settings,
    cost: CostTable,
    pairs: int,
) -> Iterator[WarmRow]:
    """For each teacher (an engine and what it is asked) one row a turn, and one for all."""
    with tempfile.TemporaryDirectory() as scratch:
        homes = {name: Path(scratch) / str(number) for number, name in enumerate(teachers)}
        for name, (teacher_on, questions) in teachers.items():
            teacher = teacher_on(TableMemory(TableFolder(homes[name])))
            list(converse(teacher, edits.file, questions, settings, cost))
            teacher.close()
        runs: dict[str, list[tuple[list[Turn], list[Turn]]]] = {name: [] for name in teachers}
        for _ in range(pairs):
            cold = list(converse(engine_on(TableMemory()), edits.file, edits.turns, settings, cost))
            for name, home in homes.items():
                # Never closed, so what is learned now is not saved: each run starts with the same table.
                folder = TableFolder(home)
                engine = engine_on(TableMemory(folder))
                warm = list(converse(engine, edits.file, edits.turns, settings, cost))
                folder.unlock(engine.loaded.info.family)
                runs[name].append((cold, warm))
        for name, measured in runs.items():
            for turn in range(len(edits.turns) + 1):
                yield _row(settings.drafting.drafter, name, turn, measured)


def converse(
    engine: Engine, file: str, questions: Sequence[str], settings: Settings, cost: CostTable
) -> Iterator[Turn]:
    """The answers to all questions, from an empty cache."""
    engine.forget()
    messages: list[Message] = []
    for question in questions:
        if not messages:
            question = f"This is the file stock.py:\n\n```python\n{file}```\n\n{question}"
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
        yield Turn(ids, stats.accepted, stats.tested, stats.steps, stats.decode_s, spent)


def _row(drafter: str, name: str, turn: int, runs: Sequence[tuple[list[Turn], list[Turn]]]) -> WarmRow:
    cut = slice(turn - 1, turn) if turn else slice(None)
    pairs = [(_joined(cold[cut]), _joined(warm[cut])) for cold, warm in runs]
    cold, warm = pairs[0]
    return WarmRow(
        drafter,
        name,
        turn,
        len(warm.tokens),
        cold.accepted / cold.tested if cold.tested else 0.0,
        warm.accepted / warm.tested if warm.tested else 0.0,
        cold.accepted,
        warm.accepted,
        median(_speed(cold) for cold, _ in pairs),
        median(_speed(warm) for _, warm in pairs),
        median(cold.decode_s / warm.decode_s for cold, warm in pairs),
        median(cold.cost / warm.cost for cold, warm in pairs),
        all(cold.tokens == warm.tokens for cold, warm in pairs),
    )


def _joined(turns: Sequence[Turn]) -> Turn:
    return Turn(
        tuple(token for turn in turns for token in turn.tokens),
        sum(turn.accepted for turn in turns),
        sum(turn.tested for turn in turns),
        sum(turn.steps for turn in turns),
        sum(turn.decode_s for turn in turns),
        sum(turn.cost for turn in turns),
    )


def _speed(turn: Turn) -> float:
    return len(turn.tokens) / turn.decode_s if turn.decode_s else 0.0
