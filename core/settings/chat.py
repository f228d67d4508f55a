"""Settings of a chat: what the model is told before the conversation starts, and whether it thinks first."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Chat(Struct, frozen=True, forbid_unknown_fields=True):
    """What comes before the first message."""

    system_prompt: Annotated[
        str,
        Meta(
            max_length=100_000,
            title="System prompt",
            description="Told to the model before the chat. Empty leaves the model's own.",
            extra={"empty": "The model’s own"},
        ),
    ] = ""
    thinking: Annotated[
        bool,
        Meta(
            title="Think first",
            description="The model thinks before it answers. Only for models whose chat template has a switch"
            " for it.",
        ),
    ] = True
