"""Overrides: a chat's settings that differ from the defaults. Pure.

Only differences are stored, so that a changed default applies to every chat that did not set it. A setting
that models give defaults for (`FROM_MODEL`) is also stored when the chosen value equals the current default,
so that another model's default does not replace it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct

from core.errors import SettingError
from core.settings import FROM_MODEL, Settings, assign, assign_all, declared, read


class Override(Struct, frozen=True):
    """A setting's key and the chat's value."""

    key: str
    value: Any


def differences(settings: Settings, defaults: Settings, chosen: Collection[str] = ()) -> tuple[Override, ...]:
    """Returns the settings that differ from `defaults` and those in `chosen`, in declaration order."""
    return tuple(
        Override(setting.key, read(settings, setting.key))
        for setting in declared()
        if setting.key in chosen or read(settings, setting.key) != read(defaults, setting.key)
    )


def chosen_keys(overrides: Iterable[Override]) -> frozenset[str]:
    """Returns the keys whose values apply whatever the model's default is."""
    return frozenset(each.key for each in overrides if each.key in FROM_MODEL)


def apply(defaults: Settings, overrides: Iterable[Override]) -> tuple[Settings, tuple[Override, ...]]:
    """Returns `defaults` with `overrides` applied, and the overrides that are unknown or no longer
    allowed.
    """
    wanted = tuple(overrides)
    try:
        return assign_all(defaults, [(each.key, each.value) for each in wanted]), ()
    except SettingError:
        pass  # at least one is invalid: find it
    settings, refused = defaults, []
    for each in wanted:
        try:
            settings = assign(settings, each.key, each.value)
        except SettingError:
            refused.append(each)
    return settings, tuple(refused)
