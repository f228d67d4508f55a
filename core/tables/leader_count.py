"""LeaderCount: cacheback's frozen table from any amount of text, in bounded memory.

Seed 003, §4: every window of leader and follower is counted; the most frequent leaders stay, each
with its most frequent followers. A counter of all windows of a gigabyte would need tens of
gigabytes of memory, so windows are collected, sorted and counted `rows` at a time, each run goes
to disk, and the runs are merged block by block. The counts are exact. The disk holds at most about
12 to 20 bytes a token of text, and is free again afterwards.

Among equally frequent ones the smaller ids stay. Knows no file format and no tokenizer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.frozen_table import FrozenTable

_Rows = NDArray[np.bytes_]
_Counts = NDArray[np.int64]

# About 150 MB while a run is sorted.
ROWS = 2_000_000
_BLOCK_ROWS = 200_000


class Shape(Struct, frozen=True):
    """Tokens of a leader and of a follower, how many leaders, and how many followers of each.

    A follower that came less than `least_count` times is left out. So are the rarest, where all
    leaders together have more than `most` followers: that bounds the memory and the file.
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


class _Run:
    """Rows in order with their counts, in two files, read from the start on."""

    def __init__(self, path: Path, row: np.dtype[np.bytes_], size: int) -> None:
        self._rows, self._counts = path.with_suffix(".rows"), path.with_suffix(".counts")
        self._row = row
        self._at = 0
        self.left = size

    def write(self, rows: _Rows, counts: _Counts) -> None:
        rows.tofile(self._rows)
        counts.astype(np.uint32).tofile(self._counts)

    def next_rows(self, most: int) -> _Rows:
        """The next rows, which stay the next ones."""
        start = self._at * self._row.itemsize
        return np.fromfile(self._rows, dtype=self._row, count=min(most, self.left), offset=start)

    def take(self, size: int) -> _Counts:
        """Pass over the next rows; their counts."""
        counts = np.fromfile(self._counts, dtype=np.uint32, count=size, offset=self._at * 4)
        self._at, self.left = self._at + size, self.left - size
        return counts.astype(np.int64)


class LeaderCount:
    """`with LeaderCount(shape, vocabulary) as count`: `add` texts, then `table`. Owns a scratch folder."""

    def __init__(
        self, shape: Shape, vocabulary: int, *, rows: int = ROWS, scratch: Path | None = None
    ) -> None:
        self._shape = shape
        self._bytes = 2 if vocabulary <= 1 << 16 else 4
        self._window = shape.leader_tokens + shape.follower_tokens
        self._row = np.dtype(f"S{self._window * self._bytes}")
        self._limit = rows
        self._waiting: list[_Rows] = []
        self._waiting_rows = 0
        self._runs: list[_Run] = []
        self._folder = tempfile.TemporaryDirectory(prefix="draftlight-count-", dir=scratch)
        self._tail = np.zeros(0, dtype=np.int64)

    def __enter__(self) -> LeaderCount:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs.clear()
        self._folder.cleanup()

    @property
    def runs(self) -> int:
        """Runs on disk so far."""
        return len(self._runs)

    def add(self, ids: Sequence[int], *, starts: bool = True) -> None:
        """Count the windows of `ids`. Unless it `starts` a text, those that began in the last one, too."""
        text = np.array(ids, dtype=np.int64)
        if not starts:
            text = np.concatenate([self._tail, text])
        self._tail = text[max(0, len(text) - self._window + 1) :]
        if len(text) < self._window:
            return
        big_endian = text.astype(">u2" if self._bytes == 2 else ">u4")
        windows = np.lib.stride_tricks.sliding_window_view(big_endian, self._window)
        # One byte string a window: big-endian, so that their order is that of the ids. A trailing
        # zero byte is no difference to numpy, and none here, since all have one length.
        rows: _Rows = np.frombuffer(np.ascontiguousarray(windows).tobytes(), dtype=self._row)
        for start in range(0, len(rows), self._limit):
            self._waiting.append(rows[start : start + self._limit])
            self._waiting_rows += len(self._waiting[-1])
            if self._waiting_rows >= self._limit:
                self._spill()

    def table(self) -> FrozenTable:
        """The table of all that was added; leaders most frequent first. To be asked for once."""
        self._spill()
        shape, held, size = self._shape, list[_Leader](), 0
        for leader in self._leaders():
            if leader.followers:
                held.append(leader)
                size += len(leader.followers)
            if len(held) >= 2 * shape.leaders or size >= 4 * shape.most:
                held = _thinned(_best(held, shape.leaders), 2 * shape.most)
                size = sum(len(leader.followers) for leader in held)
        entries = {}
        for leader in _thinned(_best(held, shape.leaders), shape.most):
            entries[self._ids(leader.key)] = tuple(self._ids(row) for _, row in leader.followers)
        return FrozenTable(entries)

    def _spill(self) -> None:
        if not self._waiting:
            return
        rows, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._waiting_rows = [], 0
        run = _Run(Path(self._folder.name) / str(len(self._runs)), self._row, len(rows))
        run.write(rows, counts)
        self._runs.append(run)

    def _merged(self) -> Iterator[tuple[_Rows, _Counts]]:
        """All runs as one, in blocks: rows ascending, no row twice."""
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

    def _leaders(self) -> Iterator[_Leader]:
        """Each leader once, with its best followers, most frequent first."""
        shape, size = self._shape, self._shape.leader_tokens * self._bytes
        now: _Leader | None = None
        for rows, counts in self._merged():
            raw = rows.view(np.uint8).reshape(len(rows), self._row.itemsize)
            keys = np.ascontiguousarray(raw[:, :size])
            changes = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
            for start, end in zip([0, *changes.tolist()], [*changes.tolist(), len(rows)]):
                key = keys[start].tobytes()
                if now is None or now.key != key:
                    if now is not None:
                        yield _sorted(now, shape.followers)
                    now = _Leader(key, 0, [])
                now.total += int(counts[start:end].sum())
                enough = np.flatnonzero(counts[start:end] >= shape.least_count) + start
                order = enough[np.argsort(-counts[enough], kind="stable")][: shape.followers]
                now.followers += [(int(counts[i]), raw[i, size:].tobytes()) for i in order.tolist()]
                if len(now.followers) > 2 * shape.followers:
                    _sorted(now, shape.followers)
        if now is not None:
            yield _sorted(now, shape.followers)

    def _ids(self, packed: bytes) -> tuple[int, ...]:
        return tuple(np.frombuffer(packed, dtype=">u2" if self._bytes == 2 else ">u4").tolist())


def _best(held: list[_Leader], most: int) -> list[_Leader]:
    return sorted(held, key=lambda leader: (-leader.total, leader.key))[:most]


def _sorted(leader: _Leader, most: int) -> _Leader:
    leader.followers.sort(key=lambda pair: (-pair[0], pair[1]))
    del leader.followers[most:]
    return leader


def _thinned(held: list[_Leader], most: int) -> list[_Leader]:
    """At most `most` followers in all: the rarest go, of equally rare ones those of rarer leaders."""
    counts = np.array([count for leader in held for count, _ in leader.followers], dtype=np.int64)
    if len(counts) <= most:
        return held
    least = int(np.partition(counts, len(counts) - most)[len(counts) - most])
    ties = most - int((counts > least).sum())
    for leader in held:
        kept = sum(count > least for count, _ in leader.followers)
        tied = min(ties, sum(count == least for count, _ in leader.followers))
        ties -= tied
        del leader.followers[kept + tied :]
    return [leader for leader in held if leader.followers]
