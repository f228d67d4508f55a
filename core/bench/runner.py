"""The runner of all benches: environment, journal, pieces, statistics and report.

A bench is a list of pieces, such as one pair of answers. `run_bench` measures the pieces that the journal in
`--out` does not have and appends each result to it, so an interrupted run (Ctrl-C, crash) keeps its
measurements and the same command continues. Then it prints the report, and writes it next to the journal.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from codecs import BOM_UTF8
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import comb
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from core.errors import RequestError, reason_of
from core.models.blas import threads_at_start, threads_variable
from core.system.files import read_limited
from core.system.prepared import prepared
from core.system.terminal import STOPPED, ProgressLine

# ---- environment


class Environment(Struct, frozen=True):
    """Hardware and software of a measurement, recorded with every result.

    `blas` includes the number of threads. `commit` is empty outside a git checkout and ends with `+` if
    there are uncommitted changes. `dtype` (of the model's computation) is empty without a model.
    `speculation` describes which drafts the model allows (`answers.found`); empty if it was not tested.
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
    """An append-only JSON Lines file of entries of type `kind`; in memory only if `path` is None.

    The first line holds the conditions of the measurement. Opening a file with other conditions raises
    `RequestError`, so results of different conditions are never mixed. A partial last line is cut off.
    """

    def __init__(self, path: Path | None, conditions: str, kind: type[E]) -> None:
        self.path = path
        self._entries: dict[tuple[Hashable, ...], E] = {}
        if path is None:
            return
        header = msgspec.json.encode(_Header(conditions)) + b"\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or (header != (begun := read_input(path)) and header.startswith(begun)):
            path.write_bytes(header)  # new, or cut off in its first line
        else:
            self._load(path, conditions, kind)

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
        if self.path is not None:
            with self.path.open("ab") as file:
                file.write(msgspec.json.encode(record) + b"\n")

    def _load(self, path: Path, conditions: str, kind: type[E]) -> None:
        content = read_input(path)
        complete = content[: content.rfind(b"\n") + 1]
        first, *lines = complete.splitlines() or [b""]
        try:
            header = msgspec.json.decode(first, type=prepared(_Header))
            entries = [msgspec.json.decode(line, type=prepared(kind)) for line in lines]
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{path} holds no results of this bench: {reason_of(error)}.", "Choose another --out."
            ) from None
        if header.conditions != conditions:
            raise RequestError(
                f"{path} holds results of other conditions ({header.conditions}).",
                "Choose another --out, or the same options as before.",
            )
        self._entries = {entry.key: entry for entry in entries}
        if complete != content:
            path.write_bytes(complete)


# Limit of a file named on the command line. Recorded streams, the largest, have a few megabytes.
MOST_INPUT_BYTES = 64 * 2**20


def read_input(path: Path) -> bytes:
    """The content of a file that a bench was given, without a byte order mark.

    Raises `RequestError`, also for a file without an end.
    """
    try:
        return read_limited(path, MOST_INPUT_BYTES).removeprefix(BOM_UTF8)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None


def file_label(path: Path) -> str:
    """File name and the first digits of its content's SHA-256, for the conditions of a measurement."""
    return f"{path.name} {hashlib.sha256(read_input(path)).hexdigest()[:12]}"


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


class Bench(Struct, Generic[E]):
    """A bench and its conditions: everything that must be equal for two results to be comparable.

    The journal is `OUT/NAME.jsonl` with entries of `kind`, the report `OUT/NAME.md`; without `out` nothing is
    written.
    """

    name: str
    title: str
    environment: Environment
    conditions: Sequence[object]
    kind: type[E]
    out: Path | None


def run_bench(
    bench: Bench[E],
    pieces: Sequence[BenchPiece[E]],
    line: Callable[[E], str],
    report: Callable[[tuple[E, ...]], Iterable[str]],
    *,
    quiet: bool,
) -> tuple[tuple[E, ...], PieceProgress]:
    """Measure the pieces that the journal lacks and print the report of all; returns their entries in order.

    `line(entry)` is printed on stderr for a new entry, unless `quiet` or empty. Ctrl-C ends the run after the
    last complete piece. Entries of other pieces in the journal are ignored.
    """
    conditions = "; ".join([bench.environment.line, *map(str, bench.conditions)])
    path = bench.out / f"{bench.name}.jsonl" if bench.out else None
    journal = Journal(path, conditions, bench.kind)
    entries, progress = measure(journal, pieces, line, quiet=quiet)
    lines = [f"# {bench.title}", ""]
    if not progress.whole:
        stopped = f"**Stopped after {progress.done} of {progress.total} pieces.**"
        lines += [f"{stopped} The same command continues.", ""]
    text = "\n".join([*lines, bench.environment.line, "", *report(entries)]) + "\n"
    print(text, end="")
    if path is not None:
        path.with_suffix(".md").write_text(text, encoding="utf-8")
    return entries, progress


def measure(
    journal: Journal[E], pieces: Sequence[BenchPiece[E]], line: Callable[[E], str], *, quiet: bool
) -> tuple[tuple[E, ...], PieceProgress]:
    """The measuring part of `run_bench`."""
    total = len(pieces)
    with ProgressLine(quiet) as shown:
        try:
            for number, piece in enumerate(pieces, 1):
                if not journal.has(*piece.key):
                    shown.say(f"{number} of {total}: {', '.join(map(str, piece.key))}", now=True)
                    entry = piece.measure()
                    journal.add(entry)
                    if text := line(entry):
                        shown.print(text)
        except KeyboardInterrupt:
            done = sum(journal.has(*piece.key) for piece in pieces)
            kept = f" are in {journal.path}; the same command continues" if journal.path else ""
            shown.print(f"Stopped. {done} of {total}{kept}.")
    entries = {entry.key: entry for entry in journal.all}
    measured = tuple(entries[piece.key] for piece in pieces if piece.key in entries)
    return measured, PieceProgress(len(measured), total)


# ---- statistics: exact paired tests, without assumptions about distributions


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


# ---- tables


def table(columns: str, rows: Iterable[str], *, right_from: int | None = None) -> list[str]:
    """Lines of a Markdown table. In `columns` and in each row, cells are separated by ` | `.

    Columns from index `right_from` on are right-aligned.
    """
    count = len(columns.split(" | "))
    rules = ["---" if right_from is None or at < right_from else "---:" for at in range(count)]
    return [f"| {columns} |", f"|{'|'.join(rules)}|", *(f"| {row} |" for row in rows)]
