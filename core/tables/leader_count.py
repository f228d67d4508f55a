"""LeaderCount: Cacheback's frozen table from any amount of text, in bounded memory.

As in the paper's §4: every window of leader and follower is counted; the most frequent leaders are kept, each
with its most frequent followers. Counting all windows of a gigabyte in memory would take tens of gigabytes,
so windows are collected, sorted and counted `rows` at a time, written to disk as a run (`CountRuns`), and the
runs are merged block by block. The counts are exact. The disk holds about 12 to 20 bytes per token of text
until `discard`.

Of equally frequent leaders or followers, those with smaller ids are kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import msgspec
import numpy as np
from filelock import FileLock, Timeout
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.cacheback import FrozenTable
from core.errors import TableError
from core.system.files import write_atomic
from core.system.private import FILE_MODE, make_folder, opener

# About 150 MB while a run is sorted.
ROWS = 2_000_000


class Shape(Struct, frozen=True):
    """Tokens per leader and per follower, number of leaders, and followers of each.

    Followers seen fewer than `least_count` times are dropped, and the rarest ones if all leaders together
    have more than `most`: that bounds the memory and the file size.
    """

    leader_tokens: int = 1
    follower_tokens: int = 3
    leaders: int = 1 << 20
    followers: int = 128
    least_count: int = 1
    most: int = 250_000


class _Leader(Struct):
    key: bytes
    total: int
    followers: list[tuple[int, bytes]]


class LeaderCount:
    """`with LeaderCount(shape, vocabulary, folder) as count`: `add` texts, get the `table`, `discard`.

    The counts are kept in `folder`. Without `discard`, counting resumes there the next time it is opened with
    the same `basis`: then add only what follows its `mark`.
    """

    def __init__(
        self, shape: Shape, vocabulary: int, folder: Path, *, basis: str = "", rows: int = ROWS
    ) -> None:
        self._shape = shape
        self._bytes = 2 if vocabulary <= 1 << 16 else 4
        self._window = shape.leader_tokens + shape.follower_tokens
        self._row = np.dtype(f"S{self._window * self._bytes}")
        self._limit = rows
        self._waiting: list[Rows] = []
        self._waiting_rows = 0
        self._runs = CountRuns(folder, self._row, f"{basis} {self._window} {self._bytes}")
        self._mark = CountMark()

    def __enter__(self) -> LeaderCount:
        self._runs.__enter__()
        self._mark = self._runs.mark
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs.__exit__(kind, error, trace)

    @property
    def mark(self) -> CountMark:
        """How far the text was read."""
        return self._mark

    def add(self, ids: Sequence[int], *, starts: bool = True) -> None:
        """Counts the windows of a piece; unless it `starts` a text, also those that began in the previous
        piece.
        """
        text = np.array(ids, dtype=np.int64)
        if not starts:
            text = np.concatenate([np.array(self._mark.tail, dtype=np.int64), text])
        tail = text[max(0, len(text) - self._window + 1) :].tolist()
        self._mark = CountMark(self._mark.pieces + 1, self._mark.tokens + len(ids), tuple(tail))
        if len(text) < self._window:
            return
        big_endian = text.astype(">u2" if self._bytes == 2 else ">u4")
        windows = np.lib.stride_tricks.sliding_window_view(big_endian, self._window)
        # One byte string per window, big-endian so that it sorts like the ids. NumPy ignores trailing zero
        # bytes, which is harmless because all have one length.
        self._waiting.append(np.frombuffer(np.ascontiguousarray(windows).tobytes(), dtype=self._row))
        self._waiting_rows += len(self._waiting[-1])
        if self._waiting_rows >= self._limit:
            self._spill()

    def table(self) -> FrozenTable:
        """The table of everything added, most frequent leaders first. Call it once."""
        self._spill()
        shape, leaders_held, size = self._shape, list[_Leader](), 0
        for leader in self._leaders():
            if leader.followers:
                leaders_held.append(leader)
                size += len(leader.followers)
            if len(leaders_held) >= 2 * shape.leaders or size >= 4 * shape.most:
                leaders_held = _limit_followers(_most_frequent(leaders_held, shape.leaders), 2 * shape.most)
                size = sum(len(leader.followers) for leader in leaders_held)
        entries = {}
        for leader in _limit_followers(_most_frequent(leaders_held, shape.leaders), shape.most):
            entries[self._ids(leader.key)] = tuple(self._ids(row) for _, row in leader.followers)
        return FrozenTable(entries)

    def discard(self) -> None:
        """Deletes the counts."""
        self._runs.discard()

    def _spill(self) -> None:
        if self._waiting:
            self._runs.add(np.concatenate(self._waiting), self._mark)
            self._waiting, self._waiting_rows = [], 0

    def _leaders(self) -> Iterator[_Leader]:
        """Each leader once, with its most frequent followers."""
        shape, size = self._shape, self._shape.leader_tokens * self._bytes
        current: _Leader | None = None
        for rows, counts in self._runs.merged():
            raw = rows.view(np.uint8).reshape(len(rows), self._row.itemsize)
            keys = np.ascontiguousarray(raw[:, :size])
            changes = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
            for start, end in zip([0, *changes.tolist()], [*changes.tolist(), len(rows)]):
                key = keys[start].tobytes()
                if current is None or current.key != key:
                    if current is not None:
                        yield _keep_most_frequent(current, shape.followers)
                    current = _Leader(key, 0, [])
                current.total += int(counts[start:end].sum())
                frequent = np.flatnonzero(counts[start:end] >= shape.least_count) + start
                order = frequent[np.argsort(-counts[frequent], kind="stable")][: shape.followers]
                current.followers += [(int(counts[i]), raw[i, size:].tobytes()) for i in order.tolist()]
                if len(current.followers) > 2 * shape.followers:
                    _keep_most_frequent(current, shape.followers)
        if current is not None:
            yield _keep_most_frequent(current, shape.followers)

    def _ids(self, packed: bytes) -> tuple[int, ...]:
        return tuple(np.frombuffer(packed, dtype=">u2" if self._bytes == 2 else ">u4").tolist())


def _most_frequent(leaders_held: list[_Leader], most: int) -> list[_Leader]:
    return sorted(leaders_held, key=lambda leader: (-leader.total, leader.key))[:most]


def _keep_most_frequent(leader: _Leader, most: int) -> _Leader:
    leader.followers.sort(key=lambda pair: (-pair[0], pair[1]))
    del leader.followers[most:]
    return leader


def _limit_followers(leaders_held: list[_Leader], most: int) -> list[_Leader]:
    """Drops the rarest followers until at most `most` are left; of equally rare ones, those of rarer
    leaders.
    """
    counts = np.array([count for leader in leaders_held for count, _ in leader.followers], dtype=np.int64)
    if len(counts) <= most:
        return leaders_held
    least = int(np.partition(counts, len(counts) - most)[len(counts) - most])
    ties = most - int((counts > least).sum())
    for leader in leaders_held:
        kept = sum(count > least for count, _ in leader.followers)
        tied = min(ties, sum(count == least for count, _ in leader.followers))
        ties -= tied
        del leader.followers[kept + tied :]
    return [leader for leader in leaders_held if leader.followers]


Rows = NDArray[np.bytes_]
Counts = NDArray[np.int64]

_BLOCK_ROWS = 200_000
_STATE = "state.json"


class CountMark(Struct, frozen=True):
    """How far the text was read: pieces, tokens, and the last tokens, with which the next window begins."""

    pieces: int = 0
    tokens: int = 0
    tail: tuple[int, ...] = ()


class _State(Struct, frozen=True):
    basis: str
    mark: CountMark
    sizes: tuple[int, ...]


class _Run:
    """Sorted rows and their counts in two files, read sequentially."""

    def __init__(self, path: Path, row: np.dtype[np.bytes_], size: int) -> None:
        self._rows, self._counts = path.with_suffix(".rows"), path.with_suffix(".counts")
        self._row = row
        self._at = 0
        self.size = self.left = size

    def write(self, rows: Rows, counts: Counts) -> None:
        for path, values in ((self._rows, rows), (self._counts, counts.astype(np.uint32))):
            with open(path, "wb", opener=opener) as file:
                values.tofile(file)
                file.flush()
                os.fsync(file.fileno())

    def is_whole(self) -> bool:
        files = ((self._rows, self._row.itemsize), (self._counts, 4))
        return all(path.is_file() and path.stat().st_size == self.size * width for path, width in files)

    def next_rows(self, most: int) -> Rows:
        """The next rows, without consuming them."""
        start = self._at * self._row.itemsize
        return np.fromfile(self._rows, dtype=self._row, count=min(most, self.left), offset=start)

    def consume(self, size: int) -> Counts:
        """Skips the next `size` rows and returns their counts."""
        counts = np.fromfile(self._counts, dtype=np.uint32, count=size, offset=self._at * 4)
        self._at, self.left = self._at + size, self.left - size
        return counts.astype(np.int64)


class CountRuns:
    """`with CountRuns(folder, row, basis) as runs`: rows and their counts as sorted runs on disk, merged in
    blocks.

    `row` is the dtype of a row; `basis` identifies the count. Each run is stored with a mark of how far
    the text was read, so a count that was stopped or died resumes after its last run if the folder is opened
    with the same `basis`. With another one, or if a run is damaged, it starts empty. Invariant: the runs hold
    exactly the rows before the mark. Raises `TableError` if another process uses the folder, and `OSError`
    for disk errors.
    """

    def __init__(self, folder: Path, row: np.dtype[np.bytes_], basis: str) -> None:
        self.folder = folder
        self.mark = CountMark()
        self._row = row
        self._basis = basis
        self._runs: list[_Run] = []
        self._lock = FileLock(folder / "lock", timeout=0, mode=FILE_MODE)

    def __enter__(self) -> CountRuns:
        make_folder(self.folder)
        try:
            self._lock.acquire()
        except Timeout:
            raise TableError(
                f"{self.folder} is in use: another Draftlight builds the same table.",
                "Wait until it has finished.",
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
        """Adds a run of `rows`, in any order and with repetitions; the text was read up to `mark`."""
        found, counts = np.unique(rows, return_counts=True)
        run = _Run(self.folder / str(len(self._runs)), self._row, len(found))
        run.write(found, counts)
        self._runs.append(run)
        self.mark = mark
        state = _State(self._basis, mark, tuple(each.size for each in self._runs))
        write_atomic(self.folder / _STATE, msgspec.json.encode(state))

    def merged(self) -> Iterator[tuple[Rows, Counts]]:
        """All runs merged, in blocks: ascending rows without repetition. Call it once."""
        open_ = [run for run in self._runs if run.left]
        while open_:
            each = max(1, _BLOCK_ROWS // len(open_))
            blocks = [run.next_rows(each) for run in open_]
            # All rows up to the smallest last row are in these blocks.
            last = min(block[-1] for block in blocks)
            taken = [int(np.searchsorted(block, last, side="right")) for block in blocks]
            counts = np.concatenate([run.consume(size) for run, size in zip(open_, taken)])
            rows = np.concatenate([block[:size] for block, size in zip(blocks, taken)])
            found, which = np.unique(rows, return_inverse=True)
            yield found, np.bincount(which, weights=counts).astype(np.int64)
            open_ = [run for run in open_ if run.left]

    def discard(self) -> None:
        """Deletes the runs."""
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
