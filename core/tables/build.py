"""Cacheback's frozen table of any tokenizer family, counted from a corpus of text in memory.

As in the paper's §4: every window of leader and follower is counted; the most frequent leaders are kept, each
with its most frequent followers. Of equally frequent leaders or followers, those with smaller ids are kept.
Counting takes about 40 bytes of memory per token of text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.cacheback import FrozenTable
from core.errors import RequestError

Encode = Callable[[str], Sequence[int]]

# Windows that are counted at once.
_ROWS = 2_000_000
_PIECE_CHARACTERS = 1 << 20


class Shape(Struct, frozen=True):
    """Tokens per leader and per follower, number of leaders, and followers of each.

    Followers seen fewer than `least_count` times are dropped, and the rarest ones if all leaders together
    have more than `most`, which bounds the size of the file.
    """

    leader_tokens: int = 1
    follower_tokens: int = 3
    leaders: int = 1 << 20
    followers: int = 128
    least_count: int = 1
    most: int = 250_000


class LeaderCount:
    """`add` the pieces of texts, then get the `table`."""

    def __init__(self, shape: Shape, vocabulary: int) -> None:
        self._shape = shape
        self._ids = np.dtype(">u2" if vocabulary <= 1 << 16 else ">u4")
        self._window = shape.leader_tokens + shape.follower_tokens
        # One byte string per window, big-endian so that it sorts like the ids. NumPy ignores trailing zero
        # bytes, which is harmless because all have one length.
        self._row = np.dtype(f"S{self._window * self._ids.itemsize}")
        self._tail = np.zeros(0, self._ids)
        self._waiting: list[NDArray[np.bytes_]] = []
        self._counted: list[tuple[NDArray[np.bytes_], NDArray[np.int64]]] = []
        self.tokens = 0

    def add(self, ids: Sequence[int], *, starts: bool = True) -> None:
        """Counts the windows of a piece; unless it `starts` a text, also those that began in the previous
        piece.
        """
        piece = np.array(ids, dtype=self._ids)
        # NumPy joins arrays in the machine's byte order.
        text = piece if starts else np.concatenate([self._tail, piece]).astype(self._ids)
        self.tokens += len(ids)
        self._tail = text[max(0, len(text) - self._window + 1) :]
        if len(text) < self._window:
            return
        windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(text, self._window))
        self._waiting.append(np.frombuffer(windows.tobytes(), dtype=self._row))
        if sum(map(len, self._waiting)) >= _ROWS:
            self._count()

    def table(self) -> FrozenTable:
        """The table of everything added, most frequent leaders first."""
        self._count()
        if not self._counted:
            return FrozenTable({})
        rows, which = np.unique(np.concatenate([each for each, _ in self._counted]), return_inverse=True)
        counts = np.bincount(which, weights=np.concatenate([each for _, each in self._counted]))
        ids = np.frombuffer(rows.tobytes(), self._ids).reshape(len(rows), self._window)
        leaders, followers = np.split(ids, [self._shape.leader_tokens], axis=1)
        # Rows are sorted, so those of a leader are together, and earlier ones have smaller ids.
        owner = np.concatenate([[0], np.cumsum((leaders[1:] != leaders[:-1]).any(axis=1))])
        entries: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for row in self._kept(owner, counts).tolist():
            entries.setdefault(tuple(leaders[row].tolist()), []).append(tuple(followers[row].tolist()))
        return FrozenTable({leader: tuple(held) for leader, held in entries.items()})

    def _kept(self, owner: NDArray[np.int64], counts: NDArray[Any]) -> NDArray[np.int64]:
        """The rows of the table in its order. `owner`: the leader of each row, ascending."""
        shape, totals = self._shape, np.bincount(owner, weights=counts)
        rows = np.flatnonzero(counts >= shape.least_count)
        frequent = np.argsort(-totals, kind="stable")
        frequent = frequent[np.isin(frequent, owner[rows])]
        rank = np.full(len(totals), len(totals))
        rank[frequent] = np.arange(len(frequent))
        rows = rows[np.lexsort((rows, -counts[rows], rank[owner[rows]]))]
        place = np.arange(len(rows)) - np.searchsorted(rank[owner[rows]], rank[owner[rows]])
        rows = rows[(place < shape.followers) & (rank[owner[rows]] < shape.leaders)]
        if len(rows) > shape.most:
            # Followers of more frequent leaders are kept if the followers are equally rare.
            rows = rows[np.sort(np.argsort(-counts[rows], kind="stable")[: shape.most])]
        return rows

    def _count(self) -> None:
        if self._waiting:
            self._counted.append(np.unique(np.concatenate(self._waiting), return_counts=True))
            self._waiting = []


# ---- a corpus of text as token ids, read in pieces so that its size is unlimited


class CorpusPiece(Struct, frozen=True):
    """Ids of a part of one file; `starts` is True for the file's first piece."""

    ids: list[int]
    starts: bool


class Corpus:
    """Text files and folders, which are searched recursively. Raises `RequestError` if one does not exist.

    A piece ends at the end of a line, or inside of one that is longer than a piece, so its tokens are those
    of the whole file except at that position. Files that are not UTF-8 text to their end are skipped whole
    and counted in `passed_over`; hidden files and links in folders are ignored. `read_bytes` counts the bytes
    of texts that `pieces` has read, without byte order marks.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.files: list[Path] = []
        self.passed_over = self.read_bytes = 0
        for path in paths:
            if path.is_file():
                self.files.append(path)
            elif path.is_dir():
                self.files += _inside(path)
            else:
                raise RequestError(f"{path} does not exist.", "Check the path.")
        if not self.files:
            raise RequestError(
                "There are no files to read.", "Specify text files, or folders that contain some."
            )
        self.size_bytes = sum(path.stat().st_size for path in self.files)

    def pieces(self, encode: Encode) -> Iterator[CorpusPiece]:
        """Every piece, file by file."""
        for path in self.files:
            starts = True
            try:
                for _ in _texts(path):  # to its end, before any of it counts
                    pass
                for text in _texts(path):
                    self.read_bytes += len(text.encode())
                    yield CorpusPiece(list(encode(text)), starts)
                    starts = False
            except (OSError, UnicodeDecodeError):
                self.passed_over += 1


def _inside(folder: Path) -> list[Path]:
    """Sorted, so that the same folder gives the same table."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files = (Path(place) / name for name in sorted(names) if not name.startswith("."))
        found += [path for path in files if path.is_file() and not path.is_symlink()]
    return found


def _texts(path: Path) -> Iterator[str]:
    """Pieces of about a million characters. Raises `UnicodeDecodeError` if one is not text."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        while text := file.read(_PIECE_CHARACTERS):
            text += file.readline(_PIECE_CHARACTERS)
            if "\0" in text:
                raise UnicodeDecodeError("utf-8", b"\0", 0, 1, "it is not text")
            yield text
