"""Overrides: the settings that a chat holds for itself, as the differences from the defaults.

Only what differs is kept, so that a default that changes later reaches every chat that never
touched it; of what a model may give (`FROM_MODEL`) also what was chosen and is the same for now, so
that another model's default does not come in its place. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct

from core.errors import SettingError
from core.settings import FROM_MODEL, Settings, assign, assign_all, declared, read


class Override(Struct, frozen=True):
    """One setting, by its key, with the value that the chat wants."""

    key: str
    value: Any


def differences(settings: Settings, defaults: Settings, chosen: Collection[str] = ()) -> tuple[Override, ...]:
    """What of `settings` is not as in `defaults`, and the keys in `chosen`, in the order of declaration."""
    return tuple(
        Override(setting.key, read(settings, setting.key))
        for setting in declared()
        if setting.key in chosen or read(settings, setting.key) != read(defaults, setting.key)
    )


def chosen_keys(overrides: Iterable[Override]) -> frozenset[str]:
    """Those of them that hold whatever the model's own default is."""
    return frozenset(each.key for each in overrides if each.key in FROM_MODEL)


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
