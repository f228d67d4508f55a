"""Names: what each model is called where several are listed, so that no two look alike. Pure; no Qt."""

from __future__ import annotations

import os
from collections.abc import Sequence

from app.windows.models import strings
from core.events import ModelEntry


def names_of(models: Sequence[ModelEntry]) -> dict[str, str]:
    """By reference: the model's name, and where others have the same one, what it differs in behind it.

    The first that tells all of them apart: precision, size on disk, the folders they are in.
    """
    named: dict[str, list[ModelEntry]] = {}
    for entry in models:
        named.setdefault(entry.name.casefold(), []).append(entry)
    marks = {entry.reference: mark for alike in named.values() for entry, mark in zip(alike, _marks(alike))}
    return {entry.reference: strings.told_apart(entry.name, marks[entry.reference]) for entry in models}


def _marks(alike: Sequence[ModelEntry]) -> list[str]:
    """One for each, all of them different; empty for one alone."""
    if len(alike) == 1:
        return [""]
    precisions = [strings.bits(entry.bits, entry.dtype) for entry in alike]
    sizes = [strings.size(entry.disk_bytes) for entry in alike]
    return next((marks for marks in (precisions, sizes) if _all_differ(marks)), _places(alike))


def _places(alike: Sequence[ModelEntry]) -> list[str]:
    """The folders' own names, a hub name's owner, or the folders that they are in: as many as it takes."""
    parts = [entry.reference.replace("\\", "/").strip("/").split("/") for entry in alike]
    own = [each[-1] if os.path.isabs(entry.reference) else each[0] for entry, each in zip(alike, parts)]
    if _all_differ(own):
        return own
    for depth in range(1, max(map(len, parts))):
        places = ["/".join(each[:-1][-depth:] or each) for each in parts]
        if _all_differ(places):
            return places
    return [entry.reference for entry in alike]


def _all_differ(marks: Sequence[str]) -> bool:
    return all(marks) and len(set(marks)) == len(marks)
