"""Vectors of texts: on the disk, found there or computed (`Embedder`), and made in idle time.

The cache folder's `vectors` (mode 0700) holds one safetensors file (0600) per text and passage boundaries,
at most 64 MB in all; the least recently used ones are removed first. A file's name is made of hashes, so the
text is not in it, and `erase` needs nothing but the text's hash. Files are replaced in one rename: the
workers of the window and of a server may share the folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import DraftlightError, EncoderUnavailableError, reason_of
from core.events import (
    DocumentEmbedded,
    EmbedTexts,
    FindSimilar,
    SimilarFound,
    SimilarPassage,
    TextsEmbedded,
)
from core.system.files import CacheFolder, write_atomic
from core.system.paths import cache_dir
from core.system.private import make_folder

if TYPE_CHECKING:  # the encoder is not loaded before its first use
    from core.encoder.encoder import Encoder, TextVectors

Array = np.ndarray[Any, Any]
Embedding = Generator[int, None, "TextVectors"]

_FORMAT = "2"
_LIMIT_BYTES = 64 << 20
_SUFFIX = ".safetensors"
_BEGUN = 4


class VectorStore(CacheFolder):
    """Files in `folder` (None: in the cache folder), at most `limit_bytes` together. Any thread."""

    def __init__(self, folder: Path | None = None, limit_bytes: int = _LIMIT_BYTES) -> None:
        super().__init__(folder or cache_dir() / "vectors", _SUFFIX)
        self._limit_bytes = limit_bytes

    def read(self, text: str, passages: Array) -> TextVectors | None:
        """The vectors of `passages` (int32 [n, 2]) of `text`, or None. Removes damaged files."""
        found = self._read(self._path(text, passages))
        return found[1] if found else None

    def of_digest(self, digest: str) -> tuple[Array, TextVectors] | None:
        """Passages and vectors of the text that `text_key` names so, the newest if there are several."""
        newest = reversed(self.dated())
        paths = [path for _, _, path in newest if path.name.startswith(f"{digest}-")]
        return next((found for path in paths if (found := self._read(path))), None)

    def _read(self, path: Path) -> tuple[Array, TextVectors] | None:
        from safetensors import safe_open

        from core.encoder.encoder import MODEL_ID, WIDTH, TextVectors

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
            self.remove(path)
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
            raise OSError(errno.EFBIG, "they are larger than the cache")
        make_folder(self.folder)
        write_atomic(self._path(text, passages), content)
        self.fit(self._limit_bytes)

    def erase(self, digest: str) -> None:
        """Remove all vectors of the text whose `text_key` is `digest`."""
        self.erase_named(f"{digest}-")

    def _path(self, text: str, passages: Array) -> Path:
        from core.encoder.encoder import MODEL_ID

        made_of = np.ascontiguousarray(passages, np.int32).tobytes() + f"{_FORMAT}/{MODEL_ID}".encode()
        return self.folder / f"{text_key(text)}-{hashlib.sha256(made_of).hexdigest()[:16]}{_SUFFIX}"


class Embedder:
    """The encoder, opened at first use, and its vectors on the disk. Belongs to the thread that owns MLX.

    `failure`: why the vectors that `vectors` returned last are not on the disk, empty if they are. An
    embedding that was abandoned continues where it stopped when the same text is requested again.
    """

    def __init__(self, store: VectorStore | None = None, opener: Callable[[], Encoder] | None = None) -> None:
        self._store = store or VectorStore()
        self._opener = opener
        self._encoder: Encoder | None = None
        self._unavailable: EncoderUnavailableError | None = None
        self._begun: dict[str, _Begun] = {}
        self.failure = ""

    def stored(self, text: str, passages: Array) -> TextVectors | None:
        """Vectors that are on the disk; the encoder is not opened."""
        return self._store.read(text, passages)

    def vectors(self, text: str, passages: Array) -> Embedding:
        """The vectors of `passages` (int32 [n, 2]) of `text`, from the disk or computed and kept there.

        Yields the number of encoded pieces. Raises `EncoderUnavailableError`. A disk that cannot be
        written to is noted in `failure`; the vectors are returned all the same.
        """
        key = _key(text, passages)
        while True:
            # Not begun yet, or ended by another request, `unload` or `erase`.
            if key not in self._begun and (found := self._store.read(text, passages)) is not None:
                self.failure = ""
                return found
            begun = self._begin(key, text, passages)
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
            self.failure = f"Passage vectors cannot be kept on the disk: {reason_of(error)}."
        return vectors

    def fraction(self, text: str, passages: Array) -> float:
        """The share of a begun embedding that is done, 0 to 1."""
        begun = self._begun.get(_key(text, passages))
        return begun.done / begun.pieces if begun and begun.pieces else 0.0

    def left(self, text: str, passages: Array) -> float:
        """The share of an embedding that is still to be computed, 0 to 1."""
        begun = self._begun.get(_key(text, passages))
        if begun is None:
            return float(self._store.read(text, passages) is None)
        return 1.0 - begun.done / begun.pieces if begun.pieces else 1.0

    def of_digest(self, digest: str) -> tuple[Array, TextVectors] | None:
        """Passages and vectors on the disk of the text that `text_key` names so."""
        return self._store.of_digest(digest)

    def query(self, text: str) -> Array:
        """float32 [384], the vector of a question. Raises `EncoderUnavailableError`."""
        from core.encoder.encoder import query_vector

        return query_vector(self._open(), text)

    def texts(self, texts: Sequence[str]) -> tuple[Array, Array, Array]:
        """Vectors of whole texts, see `text_vectors`. Nothing is kept. Raises `EncoderUnavailableError`."""
        from core.encoder.encoder import text_vectors

        return text_vectors(self._open(), texts)

    def forget(self, digest: str) -> None:
        """Drop the unfinished embeddings of the text with this `text_key`."""
        for key in [key for key in self._begun if key.startswith(digest)]:
            del self._begun[key]

    def erase(self, digest: str) -> None:
        """Remove the vectors of the text that `text_key` names so, begun ones too."""
        self.forget(digest)
        self._store.erase(digest)

    def erase_all(self) -> None:
        self._begun.clear()
        self._store.erase_all()

    def unload(self) -> None:
        """Free the encoder's memory and unfinished embeddings. The next use opens it again."""
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
                raise
        return self._encoder


class _Begun:
    """An embedding under way: `done` of `pieces` are encoded; 0 pieces while the text is being cut."""

    def __init__(self, encoder: Encoder, text: str, passages: Array) -> None:
        self.done = self.pieces = 0
        self.work = self._embed(encoder, text, passages)

    def _embed(self, encoder: Encoder, text: str, passages: Array) -> Embedding:
        from core.encoder.encoder import cut_pieces, embed_pieces

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


# ---- in idle time, one batch of windows at a time
#
# A batch takes some 60 ms on a CPU, the longest that a question waits. A question about a document that is
# half done continues from there (`Embedder.vectors`).


_FIRST_SAID_AFTER_S = 0.5
_SAY_EVERY_S = 0.25
# The least similarity of a search result, as for a passage that answers a question
# (`core.prefill.scorers.embedding`): on the held-out half of `bench retrieval` the right passage is among the
# results of 57% of the questions, and 15% of questions about another document have results (0.7: 65% and
# 30%).
_NEAR = 0.9
_BELOW_BEST = 0.5
_MOST_FOUND = 8
_UNKNOWN_SHARE = 0.3


class BackgroundEmbedding:
    """Embeds documents while the engine is idle; belongs to the engine's thread.

    `cut` returns a text's passages, int32 [n, 2]; `say` receives the progress; `clock` counts seconds."""

    def __init__(
        self,
        embedder: Embedder,
        cut: Callable[[str], Array],
        say: Callable[[DocumentEmbedded], None] = lambda event: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder = embedder
        self._cut = cut
        self._say = say
        self._clock = clock
        self._jobs: list[_Job] = []

    def add(self, request: str, text: str) -> None:
        """Queue `text`, as prompts contain it, for embedding."""
        self._jobs.append(_Job(request, text.strip()))

    def stop(self, request: str) -> None:
        """Drop a queued or unfinished document with its vectors."""
        for job in [job for job in self._jobs if job.request == request]:
            self._jobs.remove(job)
            if all(other.text != job.text for other in self._jobs):
                self._embedder.forget(text_key(job.text))
            self._say(DocumentEmbedded(request, "stopped"))

    def erase(self, digests: tuple[str, ...]) -> None:
        """Erase the vectors of the texts with these `text_key`s, and drop unfinished ones."""
        for job in [job for job in self._jobs if text_key(job.text) in digests]:
            self.stop(job.request)
        for digest in digests:
            self._embedder.erase(digest)

    def erase_all(self) -> None:
        for job in list(self._jobs):
            self.stop(job.request)
        self._embedder.erase_all()

    def find(self, command: FindSimilar) -> SimilarFound:
        """The passages of embedded texts that are most similar to a query."""
        found: list[SimilarPassage] = []
        missing = []
        try:
            query = self._embedder.query(command.query)
            for digest in command.digests:
                held = self._embedder.of_digest(digest)
                if held is None:
                    missing.append(digest)
                elif held[1].unknown <= _UNKNOWN_SHARE:
                    found += _nearest(digest, *held, query)
        except DraftlightError as error:
            return SimilarFound(command.request, problem=str(error))
        found.sort(key=lambda passage: -passage.similarity)
        return SimilarFound(command.request, tuple(found), tuple(missing))

    def texts(self, command: EmbedTexts) -> TextsEmbedded:
        """The vectors of whole texts, now. Raises `EncoderUnavailableError`."""
        vectors, tokens, truncated = self._embedder.texts(command.texts)
        return TextsEmbedded(
            command.request,
            vectors.astype("<f4").tobytes(),
            tuple(tokens.tolist()),
            tuple(np.flatnonzero(truncated).tolist()),
        )

    def piece(self) -> bool:
        """Embed one batch; returns False if the queue is empty."""
        if not self._jobs:
            return False
        job = self._jobs[0]
        try:
            if job.work is None:
                job.begun_s = self._clock()
                job.passages = self._cut(job.text)
                job.work = self._embedder.vectors(job.text, job.passages)
            next(job.work)
        except StopIteration:
            self._end(job, self._embedder.failure)
        except DraftlightError as error:
            self._end(job, str(error))
        except Exception as error:  # MLX out of memory, among others
            self._end(job, f"The document cannot be embedded: {reason_of(error)}.")
        else:
            self._tell(job)
        return True

    def _end(self, job: _Job, problem: str) -> None:
        self._jobs.remove(job)
        failed = DocumentEmbedded(job.request, "failed", problem=problem)
        self._say(failed if problem else DocumentEmbedded(job.request, "done", 1.0))

    def _tell(self, job: _Job) -> None:
        now = self._clock()
        if now - job.begun_s < _FIRST_SAID_AFTER_S or now - job.said_s < _SAY_EVERY_S:
            return
        job.said_s = now
        fraction = self._embedder.fraction(job.text, job.passages)
        self._say(DocumentEmbedded(job.request, "running", fraction))


def _nearest(digest: str, passages: Array, vectors: TextVectors, query: Array) -> list[SimilarPassage]:
    from core.encoder.encoder import similarity

    found = similarity(vectors, query)
    best = np.argsort(-found)[:_MOST_FOUND].tolist()
    least = max(_NEAR, float(found[best[0]]) - _BELOW_BEST) if best else 0.0
    return [
        SimilarPassage(digest, int(passages[each, 0]), int(passages[each, 1]), float(found[each]))
        for each in best
        if found[each] >= least
    ]


class _Job:
    def __init__(self, request: str, text: str) -> None:
        self.request = request
        self.text = text
        self.passages: Array
        self.work: Embedding | None = None
        self.begun_s = self.said_s = 0.0
