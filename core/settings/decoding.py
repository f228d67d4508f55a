"""Settings of decoding: how strictly a drafted answer must equal a plain one."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

ExactnessMode = Literal["fast", "guarded", "exact"]


class Decoding(Struct, frozen=True, forbid_unknown_fields=True):
    """How a draft is verified."""

    exactness: Annotated[
        ExactnessMode,
        Meta(
            title="Exactness",
            description="Checking several tokens at once can round differently from one at a time.",
            extra={
                "labels": {"fast": "Fast", "guarded": "Guarded", "exact": "Exact"},
                "notes": {
                    "fast": "Takes the model's choice at any width.",
                    "guarded": "Repeats close calls with a plain step.",
                    "exact": "Drafts only widths that matched in 15,000 compared rows.",
                },
            },
        ),
    ] = "fast"
