"""Differences from the references that are meant, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# (family, or * for all of them; beginning of the difference): why it is right so.
EXPLAINED: Mapping[tuple[str, str], str] = {}


def unexplained(family: str, faults: Iterable[str]) -> list[str]:
    """Those of a family's differences that have no reason."""
    return [fault for fault in faults if reason(family, fault) is None]


def reason(family: str, fault: str) -> str | None:
    """Why that difference is right; None if nothing says so."""
    found = (
        why
        for (name, beginning), why in EXPLAINED.items()
        if name in (family, "*") and fault.startswith(beginning)
    )
    return next(found, None)
