"""Differences from the references that are accepted, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# (family, or * for all of them; part of the difference): the reason.
EXPLAINED: Mapping[tuple[str, str], str] = {}


def unexplained(family: str, faults: Iterable[str]) -> list[str]:
    """Those of a family's differences that have no reason."""
    return [fault for fault in faults if reason(family, fault) is None]


def reason(family: str, fault: str) -> str | None:
    """The reason for that difference; None if there is none."""
    found = (why for (name, part), why in EXPLAINED.items() if name in (family, "*") and part in fault)
    return next(found, None)
