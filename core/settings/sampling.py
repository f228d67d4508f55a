"""Settings of sampling: how the next token is chosen, and when an answer ends."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

NewSeed = Literal["regenerate", "always", "never"]
# What a model's own generation_config may give.
FROM_MODEL = (
    "sampling.temperature",
    "sampling.top_p",
    "sampling.min_p",
    "sampling.top_k",
    "sampling.repetition_penalty",
)


class Sampling(Struct, frozen=True, forbid_unknown_fields=True):
    """How tokens are drawn. Temperature 0 is greedy, and then the filters do nothing."""

    temperature: Annotated[
        float,
        Meta(
            ge=0.0,
            le=2.0,
            title="Temperature",
            description="0 always takes the likeliest token. Higher is more varied.",
            extra={"step": 0.05},
        ),
    ] = 0.0
    top_p: Annotated[
        float,
        Meta(
            gt=0.0,
            le=1.0,
            title="Top-p",
            description="Draws from the likeliest tokens that together reach this probability.",
            extra={"step": 0.01},
        ),
    ] = 1.0
    min_p: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            title="Min-p",
            description="Drops tokens less likely than this share of the likeliest one.",
            extra={"step": 0.01},
        ),
    ] = 0.0
    top_k: Annotated[
        int,
        Meta(
            ge=0,
            le=1000,
            title="Top-k",
            description="Draws from this many likeliest tokens. 0 means all.",
            extra={"unit": "tokens"},
        ),
    ] = 0
    repetition_penalty: Annotated[
        float,
        Meta(
            ge=0.5,
            le=2.0,
            title="Repetition penalty",
            description="Above 1, tokens of the last 64 become less likely. 1 is off.",
            extra={"step": 0.05},
        ),
    ] = 1.0
    frequency_penalty: Annotated[
        float,
        Meta(
            ge=-2.0,
            le=2.0,
            title="Frequency penalty",
            description="Above 0, tokens become less likely each time they are used. 0 is off.",
            extra={"step": 0.05},
        ),
    ] = 0.0
    presence_penalty: Annotated[
        float,
        Meta(
            ge=-2.0,
            le=2.0,
            title="Presence penalty",
            description="Above 0, tokens that were used once become less likely. 0 is off.",
            extra={"step": 0.05},
        ),
    ] = 0.0
    max_tokens: Annotated[
        int,
        Meta(
            ge=1,
            le=131072,
            title="Length",
            description="The longest an answer may be.",
            extra={"unit": "tokens"},
        ),
    ] = 1024
    seed: Annotated[
        int,
        Meta(
            ge=0,
            le=2**31 - 1,
            title="Seed",
            description="The same seed, prompt and settings give the same answer.",
            extra={"random": True},
        ),
    ] = 42
    new_seed: Annotated[
        NewSeed,
        Meta(
            title="New seed",
            description="When another seed is drawn than the one that is set.",
            extra={
                "labels": {
                    "regenerate": "When regenerating",
                    "always": "For each answer",
                    "never": "Never",
                },
                "notes": {
                    "regenerate": "Another version of an answer gets another seed.",
                    "always": "The seed that is set is not used. An answer’s figures name its own.",
                    "never": "Regenerating gives the same answer again.",
                },
            },
        ),
    ] = "regenerate"
