"""Metadata of a setting: `about` for its texts, and one helper per kind. `core.settings.declaration` reads it
back, and msgspec checks the bounds.

Every setting has a title (sentence case) and a help text of one or two sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Meta


def about(title: str, help: str) -> Meta:
    """The texts of a setting of any kind."""
    return Meta(title=title, description=help)


def number(
    low: float,
    high: float,
    *,
    unit: str = "",
    step: float | None = None,
    factor: int = 0,
    above: bool = False,
    random: bool = False,
    zero: str = "",
) -> Meta:
    """An integer or a number from `low` to `high`, both included, or above `low` with `above`.

    `factor`: values are `low` times its powers. `random`: all values are equivalent. `zero`: what 0 means.
    """
    notes = {"0": zero} if zero else {}
    extra = _extra(unit=unit, step=step, factor=factor, random=random, notes=notes)
    return Meta(gt=low, le=high, extra=extra) if above else Meta(ge=low, le=high, extra=extra)


def choice(values: Mapping[str, str | tuple[str, str]]) -> Meta:
    """One of several values, each with its label, or with its label and a sentence about it."""
    both = {value: (each, "") if isinstance(each, str) else each for value, each in values.items()}
    labels = {value: label for value, (label, _) in both.items()}
    return Meta(extra=_extra(labels=labels, notes={value: note for value, (_, note) in both.items() if note}))


def switch(*, on: str = "", off: str = "") -> Meta:
    """Sentences about the positions of a switch."""
    return Meta(extra=_extra(notes={key: note for key, note in (("True", on), ("False", off)) if note}))


def text(
    most: int,
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
    return Meta(min_length=least, max_length=most, extra=_extra(lines=lines, names=names, empty=empty))


def _extra(**values: Any) -> dict[str, Any] | None:
    return {key: value for key, value in values.items() if value} or None
