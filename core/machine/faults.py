"""Faults of the machine during an answer: the error that reports them, and one retry with smaller chunks.

A failed command buffer leaves caches undefined, so the engine forgets them all. A fault before the first
token ends nothing that a person has seen: the answer starts again, with an eighth of the prompt chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, suppress

import mlx.core as mx
from msgspec.structs import replace

from core.errors import GpuFaultError, OutOfMemoryError, WorkerError
from core.events import Change, Event, Finished, Generate, Token
from core.models import memory
from core.settings.declaration import assign

_SMALLER = 8
_LEAST_CHUNK_TOKENS = 32


def surface() -> None:
    """Raises the fault of work that was given to the GPU, now instead of in later work (mlx#3523)."""
    if memory.on_gpu():
        mx.synchronize()


def discard_faults() -> None:
    """Drops a fault of earlier work, so that it is not charged to the next."""
    with suppress(RuntimeError):
        surface()


def error_of(error: Exception, purpose: str = "for this answer") -> WorkerError | None:
    """The error that reports `error`; None if it is not a fault of the machine. Drops further faults."""
    discard_faults()
    match memory.fault(error):
        case "memory":
            return OutOfMemoryError(
                f"There was not enough memory {purpose} ({error}).",
                "Use a shorter prompt or a smaller model.",
            )
        case "interrupted":
            return GpuFaultError(
                "macOS stopped the work of the GPU because it delayed the display.",
                "Lower the setting prefill.chunk_tokens, or close programs that use the GPU.",
            )
        case "gpu":
            return GpuFaultError(f"The GPU failed ({error}).", "Restart the worker and ask again.")
    return None


def retried(
    attempt: Callable[[Generate], Generator[Event, None, None]], request: Generate
) -> Generator[Event, None, None]:
    """The events of `attempt(request)`; once more with smaller prompt chunks after a fault before a token."""
    wanted = request.settings.prefill.chunk_tokens
    smaller = max(_LEAST_CHUNK_TOKENS, wanted // _SMALLER)
    with closing(attempt(request)) as events:
        begun = False
        try:
            for event in events:
                begun = begun or isinstance(event, Token)
                yield event
            return
        except (GpuFaultError, OutOfMemoryError) as error:
            if begun or smaller >= wanted:
                raise
            reason = f"reading in larger ones failed: {error.message}"
    settings = assign(request.settings, "prefill.chunk_tokens", smaller)
    change = Change("prefill.chunk_tokens", str(wanted), str(smaller), reason)
    with closing(attempt(replace(request, settings=settings))) as events:
        for event in events:
            if isinstance(event, Finished):
                effective = event.effective
                effective = replace(effective, changes=(*effective.changes, change))
                event = replace(event, effective=effective)
            yield event
