"""A corpus as token ids, read in pieces so that its size is unlimited, and a gram table counted from it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from core.drafting.gram_table import GramTable
from core.errors import RequestError
from core.tables.gram_count import GramCounter, Pruning

Encode = Callable[[str], Sequence[int]]

_PIECE_BYTES = 1 << 20


class CorpusPiece(Struct, frozen=True):
    """Ids of a part of one file; `starts` is True for the file's first piece."""

    ids: list[int]
    starts: bool


class Corpus:
    """Text files and folders, which are searched recursively. Raises `RequestError` if one does not exist.

    A piece ends at the end of a line, so its tokens are those of the whole file except at that position.
    Files that are not UTF-8 text are skipped and counted in `passed_over`; hidden files and links in folders
    are ignored. `read_bytes` counts the bytes that `pieces` has read.
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

    def fingerprint(self) -> str:
        """A hash that changes if any file changes."""
        facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in self.files]
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def pieces(self, encode: Encode, *, after: int = 0) -> Iterator[CorpusPiece]:
        """Every piece except the first `after`, file by file."""
        left = after
        for path in self.files:
            starts = True
            try:
                for text, read_bytes in _texts(path):
                    self.read_bytes += read_bytes
                    if left:
                        left -= 1
                    else:
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


def _texts(path: Path) -> Iterator[tuple[str, int]]:
    """Pieces of about a megabyte and their sizes. Raises `UnicodeDecodeError` if the file is not text."""
    with path.open("rb") as file:
        remaining = b""
        while block := file.read(_PIECE_BYTES):
            if b"\0" in block:
                raise UnicodeDecodeError("utf-8", block[:1], 0, 1, "it is not text")
            joined = remaining + block
            end = joined.rfind(b"\n") + 1
            if not end:  # a line longer than a piece: cut at the end of a character
                end = len(joined)
                while end and end > len(joined) - 4 and joined[end - 1] & 0xC0 == 0x80:
                    end -= 1
                end -= 1 if end and joined[end - 1] >= 0xC0 else 0
            if end:
                yield joined[:end].decode("utf-8"), end
            remaining = joined[end:]
        if remaining:
            yield remaining.decode("utf-8"), len(remaining)


class CountedText(Struct, frozen=True):
    """Tokens counted, and the share of the corpus's bytes that were read."""

    tokens: int
    share: float


class TextGrams:
    """Counts a corpus into a gram table for `auto`: call `read`, then `table`.

    Counting takes about 320 bytes of memory per token (2.6 million took 1.0 GB), so at most `most_tokens` are
    read.
    """

    def __init__(self, corpus: Corpus, encode: Encode, *, most_tokens: int) -> None:
        self._corpus = corpus
        self._encode = encode
        self._max_tokens = most_tokens
        self._counter = GramCounter()
        self._read_bytes = 0.0

    def read(self) -> Iterator[CountedText]:
        """Counts the corpus piece by piece, until its end or `most_tokens`."""
        before = 0
        for piece in self._corpus.pieces(self._encode):
            ids = piece.ids[: self._max_tokens - self._counter.positions]
            # A piece that starts inside a file lacks its four preceding tokens: too few to matter.
            self._counter.add((), ids)
            bytes_read = self._corpus.read_bytes - before
            self._read_bytes += bytes_read * len(ids) / max(len(piece.ids), 1)
            before += bytes_read
            yield self.counted
            if len(ids) < len(piece.ids) or self._counter.positions >= self._max_tokens:
                return

    @property
    def counted(self) -> CountedText:
        """The progress of counting."""
        return CountedText(self._counter.positions, self._read_bytes / max(self._corpus.size_bytes, 1))

    def table(self, pruning: Pruning) -> GramTable:
        """The counted table, pruned."""
        return self._counter.table(pruning)
