"""Texts as token ids: files and folders, read a piece at a time, so that any amount of text will do.

A piece ends at a line's end, so that tokens are those of the whole file but for that one place.
Files that are not text in UTF-8, hidden ones and links out of a folder are passed over and counted.
Knows no table; the tokenizer is given to it.

A gram table of texts, for the `auto` drafter: a corpus in, a table out.

Counted in memory, about 320 bytes a token at its end (2.6 million took 1.0 GB), so no more than
`most_tokens` of a corpus are read.
"""

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
    """Ids of a part of one file. `starts` is True for its first."""

    ids: list[int]
    starts: bool


class Corpus:
    """`paths` are files or folders; folders are searched whole. Raises `RequestError` for what is missing.

    `read_bytes` and `passed_over`, files that are no text, count what `pieces` has come by.
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
                raise RequestError(f"There is no file or folder at {path}.", "Check the path.")
        if not self.files:
            raise RequestError("There are no files to read.", "Give text files, or folders that hold some.")
        self.size_bytes = sum(path.stat().st_size for path in self.files)

    def fingerprint(self) -> str:
        """Another one if any file changed."""
        facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in self.files]
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def pieces(self, encode: Encode, *, after: int = 0) -> Iterator[CorpusPiece]:
        """Every piece but the first `after`, file after file."""
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
    """Texts of about a megabyte, and their sizes. Raises `UnicodeDecodeError` where it is no text."""
    with path.open("rb") as file:
        rest = b""
        while block := file.read(_PIECE_BYTES):
            if b"\0" in block:
                raise UnicodeDecodeError("utf-8", block[:1], 0, 1, "it is no text")
            whole = rest + block
            end = whole.rfind(b"\n") + 1
            if not end:  # a line longer than a piece: cut where a character ends
                end = len(whole)
                while end and end > len(whole) - 4 and whole[end - 1] & 0xC0 == 0x80:
                    end -= 1
                end -= 1 if end and whole[end - 1] >= 0xC0 else 0
            if end:
                yield whole[:end].decode("utf-8"), end
            rest = whole[end:]
        if rest:
            yield rest.decode("utf-8"), len(rest)


class CountedText(Struct, frozen=True):
    """Tokens counted so far, and the share of the corpus's bytes that was read for them."""

    tokens: int
    share: float


class TextGrams:
    """`read`, then `table`."""

    def __init__(self, corpus: Corpus, encode: Encode, *, most_tokens: int) -> None:
        self._corpus = corpus
        self._encode = encode
        self._most = most_tokens
        self._counter = GramCounter()
        self._read_bytes = 0.0

    def read(self) -> Iterator[CountedText]:
        """Count the corpus, a piece at a time, until its end or `most_tokens`."""
        before = 0
        for piece in self._corpus.pieces(self._encode):
            ids = piece.ids[: self._most - self._counter.places]
            # A piece that goes on in the middle of a file loses the four tokens before it: too few to matter.
            self._counter.add((), ids)
            bytes_read = self._corpus.read_bytes - before
            self._read_bytes += bytes_read * len(ids) / max(len(piece.ids), 1)
            before += bytes_read
            yield self.counted
            if len(ids) < len(piece.ids) or self._counter.places >= self._most:
                return

    @property
    def counted(self) -> CountedText:
        """How far it is."""
        return CountedText(self._counter.places, self._read_bytes / max(self._corpus.size_bytes, 1))

    def table(self, pruning: Pruning) -> GramTable:
        """What was counted, pruned to its size."""
        return self._counter.table(pruning)
