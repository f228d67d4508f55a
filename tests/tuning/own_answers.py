"""`python -m tests.tuning own-answers`: what `auto` gains from a model's own answers, by replay.

Each file of answers is a model's. Every 13th answer is replayed after short n-grams were counted from some
thousand tokens of the others (`core.drafting.gram_counts`), which answer other prompts; with more folds the
same is done for further thirteenths. Replayed answers that repeat themselves are left out (`repeated_share`),
because loops flatter every drafter. A file holds streams (`tests.tuning.streams`) or is one of AlpacaEval's
`model_outputs.json`, whose texts get the ids of the model's tokenizer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec import Struct

from core.bench.report import LOOP
from core.bench.runner import Bench, BenchPiece, describe, file_label, read_input, run_bench, table
from core.decoding.repetition import repeated_share
from core.drafting.gram_table import GramTable
from core.drafting.shared_tables import NgramTables
from core.errors import RequestError
from core.events import Message
from core.models.loader import LoadedModel, load
from core.prompt import render
from core.tables.prebuilt import GRAMS
from tests.tuning.replay import COST_TABLES, FAMILY, replay
from tests.tuning.streams import Stream, read_streams

_FOLDS = 13


class Published(Struct, frozen=True):
    """A line of AlpacaEval's `model_outputs.json`. Other fields are ignored."""

    instruction: str
    output: str


class OwnRow(Struct, frozen=True):
    """Speed of `auto` on the tested answers of `file`, by the cost table `cost`.

    `own`: tokens of other answers that were counted before; `shipped`: with the family's prebuilt table.
    """

    file: str
    shipped: bool
    own: int
    cost: str
    answers: int
    tokens: int
    speed: float

    @property
    def key(self) -> tuple[str, bool, int, str]:
        return self.file, self.shipped, self.own, self.cost


class _Fold:
    """Tested answers, and what was counted from the others so far."""

    def __init__(self, tested: Sequence[Stream], others: Sequence[Stream]) -> None:
        self.tested = [stream for stream in tested if repeated_share(stream.out) <= LOOP]
        self._others = others
        self._start()

    def _start(self) -> None:
        self._counted, self._next, self._tables = 0, iter(self._others), NgramTables()

    def tables(self, own: int) -> NgramTables:
        """Tables after about `own` tokens of the other answers. Raises `RequestError` if there are fewer."""
        if own < self._counted:
            self._start()
        while self._counted < own:
            stream = next(self._next, None)
            if stream is None:
                raise RequestError(f"There are only {self._counted:,} tokens to learn from.", "Lower --own.")
            self._tables.grams(FAMILY).learn(stream.prompt, stream.out)
            self._counted += len(stream.out)
        return self._tables


def run(options: argparse.Namespace) -> int:
    """Replay and write `own-answers.jsonl` and `own-answers.md`."""
    loaded = load(options.model)
    prebuilt, _ = GRAMS.newest(loaded.info)
    more = read_answers(options.more, loaded) if options.more else []
    pieces = []
    for path in options.answers:
        folds = _folds(read_answers(path, loaded), more, options.folds, options.max_tokens)
        name = path.parent.name if path.suffix == ".json" else path.name
        pieces += [
            BenchPiece((name, table is not None, own, cost), partial(_row, name, folds, table, own, cost))
            for table in ((None, prebuilt) if prebuilt is not None else (None,))
            for own in sorted({0, *options.own})
            for cost in options.costs
        ]
    files = [path for path in (*options.answers, options.more) if path]
    conditions = [*map(file_label, files), options.folds, options.max_tokens]
    bench = Bench("own-answers", "After own answers", describe(), conditions, OwnRow, options.out)
    return run_bench(bench, pieces, lambda row: "", report, quiet=options.quiet)[1].status(True)


def read_answers(path: Path, loaded: LoadedModel) -> list[Stream]:
    """The answers of a file. Raises `RequestError`."""
    if path.suffix != ".json":
        return read_streams(path)
    try:
        lines = msgspec.json.decode(read_input(path), type=list[Published])
    except msgspec.DecodeError as error:
        raise RequestError(f"{path}: {error}.", "It must be a list of instructions and outputs.") from None
    encode: Callable[..., list[int]] = loaded.tokenizer.encode
    end = min(loaded.eos)
    return [
        Stream(
            list(render(loaded.tokenizer, (Message("user", each.instruction),)).ids),
            [*encode(each.output, add_special_tokens=False), end],
        )
        for each in lines
        if each.output
    ]


def _folds(answers: Sequence[Stream], more: Sequence[Stream], count: int, most: int) -> list[_Fold]:
    """The first folds. At most `most` tokens of an answer are replayed."""
    folds = []
    for fold in range(count):
        tested = [
            Stream(each.prompt, each.out[:most], each.cls, each.tops[:most]) for each in answers[fold::_FOLDS]
        ]
        others = [each for at, each in enumerate(answers) if at % _FOLDS != fold]
        folds.append(_Fold(tested, [*others, *more]))
    return folds


def _row(name: str, folds: Sequence[_Fold], prebuilt: GramTable | None, own: int, cost: str) -> OwnRow:
    answers = tokens = 0
    plain_steps = 0.0
    for fold in folds:
        made = replay("auto", fold.tested, COST_TABLES[cost], "always", prebuilt, taught=fold.tables(own))
        count = sum(len(stream.out) for stream in fold.tested)
        answers += len(fold.tested)
        tokens += count
        plain_steps += count / made.speed if count else 0.0
    speed = tokens / plain_steps if tokens else 0.0
    return OwnRow(name, prebuilt is not None, own, cost, answers, tokens, speed)


def report(rows: Sequence[OwnRow]) -> list[str]:
    """The results as Markdown, with gains over the same without own answers."""
    at_first = {(row.file, row.shipped, row.cost): row.speed for row in rows if not row.own}
    lines = []
    for row, costs in groupby(
        rows, key=lambda row: (row.file, row.answers, row.tokens, row.shipped, row.own)
    ):
        held = list(costs)
        speeds = " / ".join(f"{each.speed:.3f}" for each in held)
        gains = " / ".join(
            f"{each.speed / at_first[each.file, each.shipped, each.cost] - 1:+.1%}"
            for each in held
            if (each.file, each.shipped, each.cost) in at_first
        )
        file, answers, tokens, shipped, own = row
        lines.append(
            f"{file} | {answers} | {tokens:,} | {'yes' if shipped else '–'} | {own:,} | {speeds} | {gains}"
        )
    costs = " / ".join(dict.fromkeys(row.cost for row in rows))
    return table(f"answers of | replayed | tokens | shipped table | own tokens | {costs} | gain", lines)
