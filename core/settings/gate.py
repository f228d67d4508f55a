"""Settings of the gate: when drafting is worth trying at all."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

GateMode = Literal["auto", "always", "prompt"]


class Gate(Struct, frozen=True, forbid_unknown_fields=True):
    """When drafting is worth trying at all."""

    mode: Annotated[
        GateMode,
        Meta(
            title="Draft gating",
            description="Whether drafting stops where it does not pay.",
            extra={
                "labels": {"auto": "Adaptive", "always": "Always", "prompt": "The prompt repeats"},
                "notes": {
                    "auto": "Stops drafting where few guesses are accepted, and looks again later.",
                    "always": "Drafts at every step, even where it is slower.",
                    "prompt": "Decides once, by the prompt, for the whole answer.",
                },
            },
        ),
    ] = "auto"
    repetition: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            title="Min repetition",
            description="Drafting waits, or stays off, if a smaller share of the prompt's"
            " three-token runs repeats.",
            extra={"step": 0.01},
        ),
    ] = 0.02
    rest_tokens: Annotated[
        int,
        Meta(
            ge=1,
            le=4096,
            title="Look again after",
            description="Tokens written before drafting is tried again. It grows while that fails.",
            extra={"unit": "tokens"},
        ),
    ] = 8
