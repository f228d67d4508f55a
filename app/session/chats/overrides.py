"""Overrides: the settings that a chat holds for itself, as the differences from the defaults.

Only what differs is kept, so that a default that changes later reaches every chat that never
touched it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from core.errors import SettingError
from core.settings import Settings, assign, assign_all, declared, read


class Override(Struct, frozen=True):
    """One setting, by its key, with the value that the chat wants."""

    key: str
    value: Any


def differences(settings: Settings, defaults: Settings) -> tuple[Override, ...]:
    """What of `settings` is not as in `defaults`, in the order of declaration."""
    return tuple(
        Override(setting.key, read(settings, setting.key))
        for setting in declared()
        if read(settings, setting.key) != read(defaults, setting.key)
    )


def apply(defaults: Settings, overrides: Iterable[Override]) -> tuple[Settings, tuple[Override, ...]]:
    """`defaults` with `overrides`, and those that are unknown or not allowed any more."""
    wanted = tuple(overrides)
    try:
        return assign_all(defaults, [(each.key, each.value) for each in wanted]), ()
    except SettingError:
        pass  # at least one is wrong: find out which
    settings, refused = defaults, []
    for each in wanted:
        try:
            settings = assign(settings, each.key, each.value)
        except SettingError:
            refused.append(each)
    return settings, tuple(refused)
