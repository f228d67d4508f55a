"""Vectors of texts on the disk, and the Embedder that finds them there or computes them.

The cache folder's `vectors` (mode 0700) holds one safetensors file (0600) per text and passage boundaries,
at most 64 MB in all; what was used least recently goes first. A file's name is made of hashes, so the text
is not in it, and `erase` needs nothing but the text's hash. Files are replaced in one rename: the workers of
the window and of a server may share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import EncoderUnavailableError
from core.system.files import TEMPORARY, write_atomic
from core.system.paths import cache_dir

if TYPE_CHECKING:  # nothing of the encoder is loaded before its first use
    from core.encoder.encoder import Encoder
    from core.encoder.vectors import TextVectors

Array = np.ndarray[Any, Any]
Embedding = Generator[int, None, "TextVectors"]

_FORMAT = "2"
_LIMIT_BYTES = 64 << 20
_SUFFIX = ".safetensors"
_BEGUN = 4


class VectorStore:
    """Files in `folder` (None: in the cache folder), at most `limit_bytes` together. Any thread."""

    def __init__(self, folder: Path | None = None, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._folder = folder or cache_dir() / "vectors"
        self._limit_bytes = limit_bytes

    def read(self, text: str, passages: Array) -> TextVectors | None:
        """The vectors of `passages` (int32 [n, 2]) of `text`, or None. Removes damaged files."""
        found = self._read(self._path(text, passages))
        return found[1] if found else None

    def of_digest(self, digest: str) -> tuple[Array, TextVectors] | None:
        """Passages and vectors of the text that `text_key` names so, the newest if there are several."""
        dated = sorted(self._dated(), reverse=True)
        paths = [path for _, _, path in dated if path.name.startswith(f"{digest}-")]
        return next((found for path in paths if (found := self._read(path))), None)

    def _read(self, path: Path) -> tuple[Array, TextVectors] | None:
        from safetensors import safe_open

        from core.encoder.encoder import MODEL_ID, WIDTH
        from core.encoder.vectors import TextVectors

        try:
            with safe_open(path, "np") as file:
                notes = file.metadata()
                means, counts, passages = (file.get_tensor(name) for name in ("means", "counts", "passages"))
            vectors = TextVectors(means, counts, float(notes["unknown"]), float(notes["pieces_per_word"]))
            if means.shape != (len(passages), WIDTH) or _sum(vectors, passages) != notes["sha256"]:
                raise ValueError("the content does not match its checksum")
            if notes["model"] != MODEL_ID:
                return None
            os.utime(path)
        except FileNotFoundError:
            return None
        except Exception:  # safetensors raises plain Exception
            _remove(path)
            return None
        return passages, vectors

    def write(self, text: str, passages: Array, vectors: TextVectors) -> None:
        """Keep `vectors`; files used least recently go where the limit is passed. Raises `OSError`."""
        from safetensors.numpy import save

        from core.encoder.encoder import MODEL_ID

        notes = {
            "unknown": repr(vectors.unknown),
            "pieces_per_word": repr(vectors.pieces_per_word),
            "sha256": _sum(vectors, passages),
            "model": MODEL_ID,
        }
        arrays = {
            "means": vectors.means,
            "counts": vectors.counts,
            "passages": np.ascontiguousarray(passages, np.int32),
        }
        content = save(arrays, notes)
        if len(content) > self._limit_bytes:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(self._path(text, passages), content)
        self._evict()

    def erase(self, digest: str) -> None:
        """Remove all vectors of the text that `text_key` names so."""
        for path in self._files():
            if path.name.lstrip(".").startswith(f"{digest}-"):
                _remove(path)

    def erase_all(self) -> None:
        """Remove every file."""
        for path in self._files():
            _remove(path)

    def _path(self, text: str, passages: Array) -> Path:
        from core.encoder.encoder import MODEL_ID

        made_of = np.ascontiguousarray(passages, np.int32).tobytes() + f"{_FORMAT}/{MODEL_ID}".encode()
        return self._folder / f"{text_key(text)}-{hashlib.sha256(made_of).hexdigest()[:16]}{_SUFFIX}"

    def _files(self) -> list[Path]:
        """All files, including temporary ones of a killed process."""
        return [*self._folder.glob(f"*{_SUFFIX}"), *self._folder.glob(f".*{_SUFFIX}-*{TEMPORARY}")]

    def _dated(self) -> list[tuple[int, int, Path]]:
        """The files with when they were used last (ns) and their sizes."""
        found = []
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):  # another process removed it
                facts = path.stat()
                found.append((facts.st_mtime_ns, facts.st_size, path))
        return found

    def _evict(self) -> None:
        files = sorted(self._dated())
        used = sum(size for _, size, _ in files)
        for _, size, path in files:
            if used <= self._limit_bytes:
                return
            _remove(path)
            used -= size


class Embedder:
    """The encoder, opened at first use, and its vectors on the disk. Belongs to the thread that owns MLX.

    `failure`: why vectors cannot be computed or kept, empty if they can. An embedding that was abandoned
    continues where it stopped when the same text is asked for again.
    """

    def __init__(self, store: VectorStore | None = None, opener: Callable[[], Encoder] | None = None) -> None:
        self._store = store or VectorStore()
        self._opener = opener
        self._encoder: Encoder | None = None
        self._unavailable: EncoderUnavailableError | None = None
        self._begun: dict[str, _Begun] = {}
        self.failure = ""

    @property
    def is_open(self) -> bool:
        """Whether the encoder is in memory."""
        return self._encoder is not None

    def stored(self, text: str, passages: Array) -> TextVectors | None:
        """Vectors that are on the disk; the encoder is not opened."""
        return self._store.read(text, passages)

    def vectors(self, text: str, passages: Array) -> Embedding:
        """The vectors of `passages` (int32 [n, 2]) of `text`, from the disk or computed and kept there.

        Yields the number of pieces encoded so far. Raises `EncoderUnavailableError`. A disk that cannot be
        written to is noted in `failure`; the vectors are returned all the same.
        """
        if (found := self._store.read(text, passages)) is not None:
            return found
        key = _key(text, passages)
        while True:
            begun = self._begin(key, text, passages)  # anew after `unload` or `erase`
            try:
                begun.done = next(begun.work)
            except StopIteration as end:
                vectors: TextVectors = end.value
                break
            except BaseException:
                self._begun.pop(key, None)
                raise
            yield begun.done
        self._begun.pop(key, None)
        try:
            self._store.write(text, passages, vectors)
            self.failure = ""
        except OSError as error:
            self.failure = f"Passage vectors cannot be kept on the disk: {error}."
        return vectors

    def fraction(self, text: str, passages: Array) -> float:
        """The share of a begun embedding that is done, 0 to 1."""
        begun = self._begun.get(_key(text, passages))
        return begun.done / begun.pieces if begun and begun.pieces else 0.0

    def of_digest(self, digest: str) -> tuple[Array, TextVectors] | None:
        """Passages and vectors on the disk of the text that `text_key` names so."""
        return self._store.of_digest(digest)

    def query(self, text: str) -> Array:
        """float32 [384], the vector of a question. Raises `EncoderUnavailableError`."""
        from core.encoder.vectors import query_vector

        return query_vector(self._open(), text)

    def texts(self, texts: Sequence[str]) -> tuple[Array, Array, Array]:
        """Vectors of whole texts, see `text_vectors`. Nothing is kept. Raises `EncoderUnavailableError`."""
        from core.encoder.vectors import text_vectors

        return text_vectors(self._open(), texts)

    def forget(self, digest: str) -> None:
        """Drop what was begun of the text that `text_key` names so."""
        for key in [key for key in self._begun if key.startswith(digest)]:
            del self._begun[key]

    def erase(self, digest: str) -> None:
        """Remove the vectors of the text that `text_key` names so, begun ones too."""
        self.forget(digest)
        self._store.erase(digest)

    def erase_all(self) -> None:
        """Remove all vectors."""
        self._begun.clear()
        self._store.erase_all()

    def unload(self) -> None:
        """Free the encoder's memory and what was begun. The next use opens it again."""
        self._begun.clear()
        if self._encoder is not None:
            import mlx.core as mx

            self._encoder = None
            mx.clear_cache()

    def _begin(self, key: str, text: str, passages: Array) -> _Begun:
        if (begun := self._begun.get(key)) is None:
            while len(self._begun) >= _BEGUN:
                del self._begun[next(iter(self._begun))]
            begun = self._begun[key] = _Begun(self._open(), text, passages)
        return begun

    def _open(self) -> Encoder:
        if self._unavailable is not None:  # 23 MB are not read again for each question
            raise self._unavailable
        if self._encoder is None:
            from core.encoder.encoder import open_encoder

            try:
                self._encoder = (self._opener or open_encoder)()
            except EncoderUnavailableError as error:
                self._unavailable = error
                self.failure = str(error)
                raise
        return self._encoder


class _Begun:
    """An embedding under way: `done` of `pieces` are encoded; 0 pieces while the text is being cut."""

    def __init__(self, encoder: Encoder, text: str, passages: Array) -> None:
        self.done = self.pieces = 0
        self.work = self._embed(encoder, text, passages)

    def _embed(self, encoder: Encoder, text: str, passages: Array) -> Embedding:
        from core.encoder.vectors import cut_pieces, embed_pieces

        pieces = yield from cut_pieces(encoder, text, passages)
        self.pieces = len(pieces.ids)
        return (yield from embed_pieces(encoder, pieces, len(passages)))


def text_key(text: str) -> str:
    """The SHA-256 of a text, which names its vectors."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _key(text: str, passages: Array) -> str:
    return text_key(text) + hashlib.sha256(passages.tobytes()).hexdigest()


def _sum(vectors: TextVectors, passages: Array) -> str:
    arrays = (vectors.means, vectors.counts, np.ascontiguousarray(passages, np.int32))
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
