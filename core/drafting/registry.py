"""The one list of drafters. CLI, bench, conformance tests and the engine read it.

A drafter's name is also a value of `drafting.drafter`; a test holds the two lists together.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from core.drafting.drafter import Drafter
from core.drafting.ngram_simple import NgramSimpleDrafter
from core.drafting.off import OffDrafter
from core.errors import UnknownDrafterError
from core.settings import Settings


class DrafterSpec(Struct, frozen=True):
    """`build(settings, capacity_tokens)` makes a drafter for a context of that many tokens.

    `drafts` is False for the one that never proposes: its loop may run ahead freely.
    """

    name: str
    summary: str
    build: Callable[[Settings, int], Drafter]
    drafts: bool = True


DRAFTERS: dict[str, DrafterSpec] = {
    spec.name: spec
    for spec in (
        DrafterSpec("off", "plain decoding", lambda settings, capacity: OffDrafter(), drafts=False),
        DrafterSpec(
            "ngram-simple",
            "longest recent match of the last tokens",
            lambda settings, capacity: NgramSimpleDrafter(settings.ngram_simple, capacity),
        ),
    )
}


def drafter_spec(name: str) -> DrafterSpec:
    """The spec called `name`. Raises `UnknownDrafterError` naming the known ones."""
    try:
        return DRAFTERS[name]
    except KeyError:
        raise UnknownDrafterError(
            f"There is no drafter called “{name}”.", f"Choose one of {', '.join(DRAFTERS)}."
        ) from None
