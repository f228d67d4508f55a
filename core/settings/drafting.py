"""Settings of the drafters: which one guesses, and each one's parameters (one struct a drafter)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

DrafterName = Literal["off", "ngram-simple"]


class Drafting(Struct, frozen=True, forbid_unknown_fields=True):
    """Which drafter guesses ahead."""

    drafter: Annotated[
        DrafterName,
        Meta(
            title="Drafter",
            description="Who guesses the next tokens. Every guess is checked by the model,"
            " so the answer stays the same.",
            extra={
                "labels": {"off": "Off", "ngram-simple": "N-gram simple"},
                "notes": {
                    "off": "Plain decoding, one token at a time.",
                    "ngram-simple": "Looks for the same words earlier in this chat.",
                },
            },
        ),
    ] = "ngram-simple"


class NgramSimple(Struct, frozen=True, forbid_unknown_fields=True):
    """Prompt lookup: the longest recent match of the last n tokens, copied onwards (seed 000)."""

    n_max: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            title="Longest match",
            description="The most tokens that are compared with earlier text.",
            extra={"unit": "tokens"},
        ),
    ] = 4
    n_min: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            title="Shortest match",
            description="The fewest tokens that must match before anything is drafted.",
            extra={"unit": "tokens"},
        ),
    ] = 2
    k: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Draft length",
            description="How many tokens are guessed at once.",
            extra={"unit": "tokens"},
        ),
    ] = 8
