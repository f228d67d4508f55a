"""Metadata of a setting, one helper per kind. `core.settings.declaration` reads it back.

Every setting has a title (sentence case) and a help text of one or two sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Meta


def number(
    low: float,
    high: float,
    title: str,
    help: str,
    *,
    unit: str = "",
    step: float | None = None,
    factor: int = 0,
    above: bool = False,
    random: bool = False,
) -> Meta:
    """An integer or a number from `low` to `high`, both included, or above `low` with `above`.

    `factor`: values are `low` times its powers. `random`: all values are equivalent.
    """
    extra = _extra(unit=unit, step=step, factor=factor, random=random)
    if above:
        return Meta(gt=low, le=high, title=title, description=help, extra=extra)
    return Meta(ge=low, le=high, title=title, description=help, extra=extra)


def choice(title: str, help: str, labels: Mapping[str, str], notes: Mapping[str, str] | None = None) -> Meta:
    """One of several values, with a label and optionally a sentence about each."""
    return Meta(title=title, description=help, extra=_extra(labels=dict(labels), notes=dict(notes or {})))


def switch(title: str, help: str, *, on: str = "", off: str = "") -> Meta:
    """A switch; `on` and `off` describe its positions."""
    notes = {key: note for key, note in (("True", on), ("False", off)) if note}
    return Meta(title=title, description=help, extra=_extra(notes=notes))


def text(
    most: int,
    title: str,
    help: str,
    *,
    least: int | None = None,
    lines: int = 0,
    names: Literal["", "file", "model"] = "",
    empty: str = "",
) -> Meta:
    """A text of `least` to `most` characters, or a tuple of at most `most` texts.

    `lines`: height of the input. `names`: the text is the path of a file, or a model reference. `empty`:
    meaning of the empty text.
    """
    extra = _extra(lines=lines, names=names, empty=empty)
    return Meta(min_length=least, max_length=most, title=title, description=help, extra=extra)


def _extra(**values: Any) -> dict[str, Any] | None:
    return {key: value for key, value in values.items() if value} or None
