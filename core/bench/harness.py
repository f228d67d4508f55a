"""The shared shape of a bench: environment, pieces, journal, results and report.

A bench is a list of pieces. Each piece is measured once and appended to a journal in `--out`, so an
interrupted run (Ctrl-C, crash) keeps its measurements and the same command continues with the missing
pieces. `results.json` and `report.md` are made from the journal.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from core.errors import RequestError
from core.events import Change, PositionStat
from core.models.runtime.blas import threads_at_start, threads_variable
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
                f"{self.path} holds no results of this bench: {error}.", "Choose another --out."
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
        return [f"**Stopped after {self.done} of {self.total} pieces.** The same command goes on.", ""]


def measure(
    journal: Journal[E], pieces: Sequence[BenchPiece[E]], say: Callable[[E], Iterable[str]], *, quiet: bool
) -> PieceProgress:
    """Measure the pieces missing from `journal`.

    `say(entry)` returns the lines to print on stderr for a new entry, unless `quiet`. Ctrl-C ends the
    loop after the last complete piece.
    """
    total = len(pieces)
    with ProgressLine(quiet) as line:
        try:
            for number, piece in enumerate(pieces):
                if not journal.has(*piece.key):
                    line.say(f"{number + 1} of {total}: {', '.join(map(str, piece.key))}", now=True)
                    entry = piece.measure()
                    journal.add(entry)
                    for words in say(entry):
                        line.print(words)
        except KeyboardInterrupt:
            done = sum(journal.has(*piece.key) for piece in pieces)
            line.print(f"Stopped. {done} of {total} are in {journal.path}; the same command continues.")
            return PieceProgress(done, total)
    return PieceProgress(total, total)


def of_run(journal: Journal[E], pieces: Iterable[BenchPiece[E]]) -> Iterator[E]:
    """The measured entries of `pieces`, in their order. The journal may hold entries of other runs too."""
    entries = {entry.key: entry for entry in journal.all}
    yield from (entries[piece.key] for piece in pieces if piece.key in entries)


# ---- results and report


def write_results(folder: Path, results: Struct, report: str) -> None:
    """Write `results.json` and `report.md`, replacing earlier ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    (folder / "report.md").write_text(report, encoding="utf-8")


def publish(folder: Path, results: Struct, report: str) -> None:
    """`write_results`, and print the report."""
    write_results(folder, results, report)
    print(report)


def change_lines(changes: Iterable[tuple[str, Change]]) -> list[str]:
    """The report section about requested settings that were not used, as (configuration, change) pairs."""
    lines = sorted({f"- {name}: {x.asked} ran as {x.used}, because {x.reason}" for name, x in changes})
    return ["", "## Asked for and not done", "", *lines] if lines else []


def accepted_by_position(positions: Iterable[PositionStat]) -> str:
    """`accepted/tested` for each position of a draft, separated by commas."""
    return ", ".join(f"{each.accepted}/{each.tested}" for each in positions)
