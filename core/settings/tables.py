"""Settings of the tables: whether a chat teaches them, when they are saved, when old entries leave."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Tables(Struct, frozen=True, forbid_unknown_fields=True):
    """What is remembered from one chat to the next."""

    learn: Annotated[
        bool,
        Meta(
            title="Learn from this chat",
            description="Tables remember short runs of words to guess ahead in later chats."
            " Off leaves no trace of this chat in them.",
        ),
    ] = True
    autosave_s: Annotated[
        int,
        Meta(
            ge=1,
            le=3600,
            title="Save after",
            description="Tables are saved once nothing was asked for so long, and when Draftlight quits.",
            extra={"unit": "s"},
        ),
    ] = 15
    decay_at: Annotated[
        float,
        Meta(
            ge=0.1,
            le=1.0,
            title="Evict at",
            description="Once this share of a table is used, the oldest quarter of its entries leaves.",
            extra={"step": 0.05},
        ),
    ] = 0.5
