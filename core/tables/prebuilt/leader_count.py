"""LeaderCount: cacheback's frozen table from any amount of text, in bounded memory.

Seed 003, §4: every window of leader and follower is counted; the most frequent leaders stay, each
with its most frequent followers. A counter of all windows of a gigabyte would need tens of
gigabytes of memory, so windows are collected, sorted and counted `rows` at a time (and the piece of
text that goes over), each run goes to disk, and the runs are merged block by block. The counts are
exact. The disk holds at most about 12 to 20 bytes a token of text until the count is discarded.

Among equally frequent ones the smaller ids stay. Knows no file format and no tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from msgspec import Struct

from core.drafting.tables.frozen_table import FrozenTable
from core.tables.prebuilt.count_runs import CountMark, CountRuns, Rows

# About 150 MB while a run is sorted.
ROWS = 2_000_000


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


class LeaderCount:
    """`with LeaderCount(shape, vocabulary, folder) as count`: `add` texts, ask for the `table`, `discard`.

    What is counted is kept in `folder`. Left without `discard`, it goes on from there the next time
    it is opened with the same `basis`: then give it only what comes after its `mark`.
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
        """Count the windows of a piece. Unless it `starts` a text, those that began in the last one, too."""
        text = np.array(ids, dtype=np.int64)
        if not starts:
            text = np.concatenate([np.array(self._mark.tail, dtype=np.int64), text])
        tail = text[max(0, len(text) - self._window + 1) :].tolist()
        self._mark = CountMark(self._mark.pieces + 1, self._mark.tokens + len(ids), tuple(tail))
        if len(text) < self._window:
            return
        big_endian = text.astype(">u2" if self._bytes == 2 else ">u4")
        windows = np.lib.stride_tricks.sliding_window_view(big_endian, self._window)
        # One byte string a window: big-endian, so that their order is that of the ids. A trailing
        # zero byte is no difference to numpy, and none here, since all have one length.
        self._waiting.append(np.frombuffer(np.ascontiguousarray(windows).tobytes(), dtype=self._row))
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

    def discard(self) -> None:
        """Nothing of this is needed any more."""
        self._runs.discard()

    def _spill(self) -> None:
        if self._waiting:
            self._runs.add(np.concatenate(self._waiting), self._mark)
            self._waiting, self._waiting_rows = [], 0

    def _leaders(self) -> Iterator[_Leader]:
        """Each leader once, with its best followers, most frequent first."""
        shape, size = self._shape, self._shape.leader_tokens * self._bytes
        now: _Leader | None = None
        for rows, counts in self._runs.merged():
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
