"""Protocol words for tests: events as a worker sends them, with only what a test cares about."""

from __future__ import annotations

from core.events import (
    Effective,
    Failed,
    Finished,
    FinishReason,
    Gauges,
    Heartbeat,
    Hello,
    ModelInfo,
    ModelLoaded,
    Occupancy,
    Origin,
    Passage,
    PrefillProgress,
    ReadingMap,
    Stats,
    Token,
)
from core.events.codec import WorkerExited
from core.settings import Settings

INFO = ModelInfo(
    name="Toy 1M",
    path="toy",
    family="f" * 64,
    family_name="Toy",
    architecture="toy",
    dtype="float32",
    quantisation="",
    parameters=1_000_000,
    size_bytes=4_000_000,
    context_tokens=8192,
    vocabulary=256,
    layers=2,
    speculates=True,
)
HELLO = Hello(1, 1, "0.1.0", "0", "0", "cpu", "none")
LOADED = ModelLoaded(INFO)
HEARTBEAT = Heartbeat("ready", 0.0, 1_000_000, 2_000_000)
KILLED = WorkerExited(-9, "SIGKILL", ("last words",), False)


def token(
    position: int, request: str = "r1", text: str = "a", origin: Origin = "normal", step: int = 0
) -> Token:
    return Token(request, 7, text, origin, step or position + 1, position)


def finished(
    request: str = "r1", tokens: int = 0, reason: FinishReason = "stop", context: int = 0
) -> Finished:
    stats = Stats(prompt_tokens=5, tokens=tokens, normal=tokens, steps=tokens, context_used_tokens=context)
    return Finished(request, reason, stats, Effective("Toy 1M", "float32", "ngram-simple", Settings()))


def failed(request: str = "r1", command: str = "generate", code: str = "prompt-too-long") -> Failed:
    return Failed(request, command, "request", code, "Too long.", "Shorten it.")


def reading(request: str = "r1") -> PrefillProgress:
    return PrefillProgress(request, 1, 5, 0)


def reading_map(request: str = "r1") -> ReadingMap:
    return ReadingMap(request, "lexical", 64, 32, (Passage(0, 32, True, 0.9), Passage(32, 64, False, 0.1)))


def gauges(request: str = "r1", context: int = 10) -> Gauges:
    return Gauges(request, 20.0, 0.5, 1, 0, 0, 0.0, 1.0, (), Occupancy(), 1_000_000, context, 8192)
