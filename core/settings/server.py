"""Settings of the local server: where it listens, who may ask, what it keeps."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """OpenAI's API for editors and scripts on this machine."""

    port: Annotated[
        int,
        Meta(
            ge=1024,
            le=65535,
            title="Port",
            description="Where clients find the server on this machine.",
        ),
    ] = 8317
    waiting: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            title="Waiting requests",
            description="How many may wait while one is answered. More are told to come back later.",
            extra={"unit": "requests"},
        ),
    ] = 16
    max_body_mb: Annotated[
        int,
        Meta(
            ge=1,
            le=48,
            title="Largest request",
            description="A longer one is refused before it is read.",
            extra={"unit": "MB"},
        ),
    ] = 16
    learn: Annotated[
        bool,
        Meta(
            title="Learn from requests",
            description="Tables may remember short runs of words from what clients send, as they do from"
            " chats.",
        ),
    ] = False
