"""Embeds documents while the engine is idle, one batch of windows at a time.

A batch takes some 60 ms on a CPU, the longest that a question waits. A question about a document that is half
done continues from there (`Embedder.vectors`). Belongs to the engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from core.encoder.store import Array, Embedder, Embedding, text_key
from core.errors import DraftlightError
from core.events import (
    DocumentEmbedded,
    EmbedTexts,
    FindSimilar,
    SimilarFound,
    SimilarPassage,
    TextsEmbedded,
)

if TYPE_CHECKING:
    from core.encoder.vectors import TextVectors

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
    """`cut` returns a text's passages, int32 [n, 2]; `say` receives the progress; `clock` counts seconds."""

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
        """Erase all vectors and drop queued and unfinished documents."""
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
            self._end(job, DocumentEmbedded(job.request, "done", 1.0))
        except (DraftlightError, MemoryError, RuntimeError) as error:  # MLX out of memory, among others
            self._end(job, DocumentEmbedded(job.request, "failed", problem=str(error)))
        else:
            self._tell(job)
        return True

    def _end(self, job: _Job, event: DocumentEmbedded) -> None:
        self._jobs.remove(job)
        self._say(event)

    def _tell(self, job: _Job) -> None:
        now = self._clock()
        if now - job.begun_s < _FIRST_SAID_AFTER_S or now - job.said_s < _SAY_EVERY_S:
            return
        job.said_s = now
        fraction = self._embedder.fraction(job.text, job.passages)
        self._say(DocumentEmbedded(job.request, "running", fraction))


def _nearest(digest: str, passages: Array, vectors: TextVectors, query: Array) -> list[SimilarPassage]:
    from core.encoder.vectors import similarity

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
