"""The shared shape of a bench: environment, journal, pieces, statistics, results and report.

A bench is a list of pieces, such as one pair of answers. `measure` runs the pieces that the journal in
`--out` does not have and appends each result to it, so an interrupted run (Ctrl-C, crash) keeps its
measurements and the same command continues. `publish` writes `results.json` and `report.md` from the results.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import comb
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from core.errors import RequestError, reason_of
from core.events import Change, PositionStat
from core.models.blas import threads_at_start, threads_variable
from core.system.terminal import STOPPED, ProgressLine

# ---- environment


class Environment(Struct, frozen=True):
    """Hardware and software of a measurement, recorded with every result.

    `blas` includes the number of threads. `commit` is empty outside a git checkout and ends with `+` if
    there are uncommitted changes. `dtype` (of the model's computation) is empty without a model.
    `speculation` describes which drafts the model allows (`runs.found`); empty if it was not tested.
    """

    system: str
    machine: str
    processor: str
    cores: int
    python: str
    draftlight: str
    mlx: str
    mlx_lm: str
    blas: str
    commit: str
    dtype: str = ""
    speculation: str = ""

    @property
    def line(self) -> str:
        """All fields as one line of a report."""
        return (
            f"{self.system} {self.machine}, {self.processor}, {self.cores} cores; Python {self.python},"
            f" mlx {self.mlx}, mlx-lm {self.mlx_lm}, {self.blas}"
            f"{f', {self.dtype}' if self.dtype else ''}{f', {self.speculation}' if self.speculation else ''};"
            f" Draftlight {self.draftlight} {self.commit}"
        )


def describe(blas: str = "", dtype: str = "", speculation: str = "") -> Environment:
    """The environment of this process. `blas` is the return value of `prepare()`; empty without a model."""
    version = importlib.metadata.version
    return Environment(
        platform.system(),
        platform.machine(),
        _processor(),
        os.cpu_count() or 0,
        platform.python_version(),
        version("draftlight"),
        version("mlx"),
        version("mlx-lm"),
        blas + _threads() if blas else "no model",
        _commit(),
        dtype,
        speculation,
    )


def _threads() -> str:
    count, variable = threads_at_start(), threads_variable()
    return f", {count} threads{f' ({variable} is set)' if variable else ''}" if count else ""


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


# ---- journal


class Entry(Protocol):
    """A `Struct` with a `key` that is unique within its journal."""

    @property
    def key(self) -> tuple[Hashable, ...]: ...


E = TypeVar("E", bound=Entry)


class _Header(Struct, frozen=True):
    conditions: str


class Journal(Generic[E]):
    """An append-only JSON Lines file of entries of type `kind`.

    The first line holds the conditions of the measurement. Opening a file with other conditions raises
    `RequestError`, so results of different conditions are never mixed. A partial last line is cut off.
    """

    def __init__(self, path: Path, conditions: str, kind: type[E]) -> None:
        self.path = path
        self._entries: dict[tuple[Hashable, ...], E] = {}
        if path.exists():
            self._load(conditions, kind)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(_Header(conditions))

    @property
    def all(self) -> tuple[E, ...]:
        """All entries in the order they were written."""
        return tuple(self._entries.values())

    def has(self, *key: Hashable) -> bool:
        """Whether there is an entry with this key."""
        return key in self._entries

    def add(self, entry: E) -> None:
        """Append an entry to the file."""
        self._entries[entry.key] = entry
        self._write(entry)

    def _write(self, record: object) -> None:
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")

    def _load(self, conditions: str, kind: type[E]) -> None:
        content = self.path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        first, *lines = complete.splitlines() or [b""]
        try:
            header = msgspec.json.decode(first, type=_Header)
            entries = [msgspec.json.decode(line, type=kind) for line in lines]
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{self.path} holds no results of this bench: {reason_of(error)}.", "Choose another --out."
            ) from None
        if header.conditions != conditions:
            raise RequestError(
                f"{self.path} holds results of other conditions ({header.conditions}).",
                "Choose another --out, or the same options as before.",
            )
        self._entries = {entry.key: entry for entry in entries}
        if complete != content:
            self.path.write_bytes(complete)


def conditions(environment: Environment, *others: object) -> str:
    """The journal header: everything that must be equal for two results to be comparable."""
    return "; ".join([environment.line, *map(str, others)])


def fingerprint(path: Path) -> str:
    """First 12 hex digits of the SHA-256 of a file's content. Raises `OSError`."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


# ---- pieces


class BenchPiece(NamedTuple, Generic[E]):
    """One measurement: the key of its journal entry, and the function that makes the entry."""

    key: tuple[Hashable, ...]
    measure: Callable[[], E]


class PieceProgress(Struct, frozen=True):
    """How many of a run's pieces are in the journal."""

    done: int
    total: int

    @property
    def whole(self) -> bool:
        return self.done == self.total

    def status(self, good: bool) -> int:
        """Exit status: 130 if interrupted, else 0 if the results are `good`, else 1."""
        return STOPPED if not self.whole else 0 if good else 1

    @property
    def lines(self) -> list[str]:
        """Report lines that mark an interrupted run; empty for a complete one."""
        if self.whole:
            return []
        return [f"**Stopped after {self.done} of {self.total} pieces.** The same command continues.", ""]


def measure(
    journal: Journal[E], pieces: Sequence[BenchPiece[E]], lines: Callable[[E], Iterable[str]], *, quiet: bool
) -> tuple[tuple[E, ...], PieceProgress]:
    """Measure the pieces missing from `journal`; returns all measured entries of `pieces` in their order.

    `lines(entry)` are printed on stderr for a new entry, unless `quiet`. Ctrl-C ends the loop after the last
    complete piece. Entries of other pieces in the journal are ignored.
    """
    total = len(pieces)
    with ProgressLine(quiet) as line:
        try:
            for number, piece in enumerate(pieces, 1):
                if not journal.has(*piece.key):
                    line.say(f"{number} of {total}: {', '.join(map(str, piece.key))}", now=True)
                    entry = piece.measure()
                    journal.add(entry)
                    for text in lines(entry):
                        line.print(text)
        except KeyboardInterrupt:
            done = sum(journal.has(*piece.key) for piece in pieces)
            line.print(f"Stopped. {done} of {total} are in {journal.path}; the same command continues.")
    entries = {entry.key: entry for entry in journal.all}
    measured = tuple(entries[piece.key] for piece in pieces if piece.key in entries)
    return measured, PieceProgress(len(measured), total)


# ---- statistics: medians and exact paired tests, without assumptions about distributions


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p-value of the exact sign test; ties are excluded by the caller.

    For the discordant pairs of two pass/fail series this is McNemar's exact test.
    """
    trials = wins + losses
    if not trials:
        return 1.0
    tail = sum(comb(trials, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2.0 * tail / 2.0**trials)


def compare(ours: Sequence[float], theirs: Sequence[float]) -> tuple[int, int]:
    """The number of pairs where `ours` is lower, and where `theirs` is lower."""
    pairs = list(zip(ours, theirs, strict=True))
    return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)


def median(values: Iterable[float]) -> float:
    """The median; 0 for no values."""
    held = list(values)
    return statistics.median(held) if held else 0.0


def speed_ratio(candidate_per_s: float, baseline_per_s: float) -> float:
    """Candidate speed / baseline speed; 0 if either is 0, as for an answer that took a single step."""
    return candidate_per_s / baseline_per_s if candidate_per_s and baseline_per_s else 0.0


def known(values: Iterable[float]) -> list[float]:
    """The values that were measured; an unmeasured speed or ratio is 0."""
    return [value for value in values if value]


def quartiles(values: Iterable[float]) -> tuple[float, float]:
    """First and third quartile; the value itself if there is one, zeros for no values."""
    held = sorted(values)
    if len(held) < 2:
        return (held[0], held[0]) if held else (0.0, 0.0)
    low, _, high = statistics.quantiles(held, n=4, method="inclusive")
    return low, high


# ---- results and report


def publish(folder: Path, results: Struct, report: str) -> None:
    """Write `results.json` and `report.md` to `folder`, replacing earlier ones, and print the report."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    (folder / "report.md").write_text(report, encoding="utf-8")
    print(report)


def table(columns: str, rows: Iterable[str], *, right_from: int | None = None) -> list[str]:
    """Lines of a Markdown table. In `columns` and in each row, cells are separated by ` | `.

    Columns from index `right_from` on are right-aligned.
    """
    count = len(columns.split(" | "))
    rules = ["---" if right_from is None or at < right_from else "---:" for at in range(count)]
    return [f"| {columns} |", f"|{'|'.join(rules)}|", *(f"| {row} |" for row in rows)]


def change_lines(changes: Iterable[tuple[str, Change]]) -> list[str]:
    """The report section about requested settings that were not used, as (configuration, change) pairs."""
    lines = sorted({f"- {name}: {x.asked} ran as {x.used}, because {x.reason}" for name, x in changes})
    return ["", "## Requested but not applied", "", *lines] if lines else []


def accepted_by_position(positions: Iterable[PositionStat]) -> str:
    """`accepted/tested` for each position of a draft, separated by commas."""
    return ", ".join(f"{each.accepted}/{each.tested}" for each in positions)
