"""CountRuns: rows with how often they came, in sorted runs on disk that are merged block by block.

With each run goes a mark, how far the text was read by then. So a count that was stopped, or died,
goes on from its last run: the folder is opened again with the same `basis`. With another one, or
if a run is not what it was, it starts empty. One process at a time.

Invariant: every row before the mark is in the runs, and no row behind it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import msgspec
import numpy as np
from filelock import FileLock, Timeout
from msgspec import Struct
from numpy.typing import NDArray

from core.errors import TableError
from core.tables.folder import write_whole

Rows = NDArray[np.bytes_]
Counts = NDArray[np.int64]

_BLOCK_ROWS = 200_000
_STATE = "state.json"


class CountMark(Struct, frozen=True):
    """How far the text was read: pieces, tokens in them, and the last tokens, which begin the next window."""

    pieces: int = 0
    tokens: int = 0
    tail: tuple[int, ...] = ()


class _State(Struct, frozen=True):
    basis: str
    mark: CountMark
    sizes: tuple[int, ...]


class _Run:
    """Rows in order with their counts, in two files, read from the start on."""

    def __init__(self, path: Path, row: np.dtype[np.bytes_], size: int) -> None:
        self._rows, self._counts = path.with_suffix(".rows"), path.with_suffix(".counts")
        self._row = row
        self._at = 0
        self.size = self.left = size

    def write(self, rows: Rows, counts: Counts) -> None:
        for path, values in ((self._rows, rows), (self._counts, counts.astype(np.uint32))):
            with path.open("wb") as file:
                values.tofile(file)
                file.flush()
                os.fsync(file.fileno())

    def is_whole(self) -> bool:
        files = ((self._rows, self._row.itemsize), (self._counts, 4))
        return all(path.is_file() and path.stat().st_size == self.size * width for path, width in files)

    def next_rows(self, most: int) -> Rows:
        """The next rows, which stay the next ones."""
        start = self._at * self._row.itemsize
        return np.fromfile(self._rows, dtype=self._row, count=min(most, self.left), offset=start)

    def take(self, size: int) -> Counts:
        """Pass over the next rows; their counts."""
        counts = np.fromfile(self._counts, dtype=np.uint32, count=size, offset=self._at * 4)
        self._at, self.left = self._at + size, self.left - size
        return counts.astype(np.int64)


class CountRuns:
    """`with CountRuns(folder, row, basis) as runs`. `row` is the type of a row, `basis` what is counted.

    Raises `TableError` if another process has the folder, and `OSError` where the disk does not do.
    """

    def __init__(self, folder: Path, row: np.dtype[np.bytes_], basis: str) -> None:
        self.folder = folder
        self.mark = CountMark()
        self._row = row
        self._basis = basis
        self._runs: list[_Run] = []
        self._lock = FileLock(folder / "lock", timeout=0)

    def __enter__(self) -> CountRuns:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise TableError(
                f"{self.folder} is in use: another Draftlight builds the same table.",
                "Wait until that one is done.",
            ) from None
        self._restore()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __len__(self) -> int:
        """Runs on disk."""
        return len(self._runs)

    def add(self, rows: Rows, mark: CountMark) -> None:
        """One more run, of `rows` in any order and as often as they came; the text is read up to `mark`."""
        found, counts = np.unique(rows, return_counts=True)
        run = _Run(self.folder / str(len(self._runs)), self._row, len(found))
        run.write(found, counts)
        self._runs.append(run)
        self.mark = mark
        state = _State(self._basis, mark, tuple(each.size for each in self._runs))
        write_whole(self.folder / _STATE, msgspec.json.encode(state))

    def merged(self) -> Iterator[tuple[Rows, Counts]]:
        """All runs as one, in blocks: rows ascending, no row twice. To be asked for once."""
        open_ = [run for run in self._runs if run.left]
        while open_:
            each = max(1, _BLOCK_ROWS // len(open_))
            blocks = [run.next_rows(each) for run in open_]
            # Rows up to the smallest of the blocks' last ones are in these blocks, all of them.
            last = min(block[-1] for block in blocks)
            taken = [int(np.searchsorted(block, last, side="right")) for block in blocks]
            counts = np.concatenate([run.take(size) for run, size in zip(open_, taken)])
            rows = np.concatenate([block[:size] for block, size in zip(blocks, taken)])
            found, which = np.unique(rows, return_inverse=True)
            yield found, np.bincount(which, weights=counts).astype(np.int64)
            open_ = [run for run in open_ if run.left]

    def discard(self) -> None:
        """The runs are not needed any more."""
        shutil.rmtree(self.folder)

    def _restore(self) -> None:
        try:
            state = msgspec.json.decode((self.folder / _STATE).read_bytes(), type=_State)
        except (OSError, msgspec.DecodeError):
            state = None
        if state is not None and state.basis == self._basis:
            runs = [_Run(self.folder / str(i), self._row, size) for i, size in enumerate(state.sizes)]
            if all(run.is_whole() for run in runs):
                self._runs, self.mark = runs, state.mark
                return
        for path in self.folder.iterdir():
            if path.name != "lock":
                path.unlink()
