"""Settings of prefill: how the prompt is read."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Prefill(Struct, frozen=True, forbid_unknown_fields=True):
    """How the prompt is read."""

    chunk_tokens: Annotated[
        int,
        Meta(
            ge=32,
            le=8192,
            title="Reading chunk",
            description="Tokens read between two looks at the stop button.",
            extra={"unit": "tokens"},
        ),
    ] = 512
