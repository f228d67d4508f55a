"""Overrides and presets: settings that differ from the defaults, of a chat and under a name. Pure.

A chat stores only differences, so that a changed default applies to every chat that did not set it. A setting
that models give defaults for (`FROM_MODEL`) is also stored when the chosen value equals the current default,
so that another model's default does not replace it.

A preset is a system prompt and settings for a kind of work. It stores the differences from Draftlight's own
settings; all other settings follow the person's defaults. Five are built in. The person's own presets are
stored in the preferences and hide built-in ones of the same name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct

from core.settings import FROM_MODEL, Settings, declared, read
from core.settings.declaration import assign_allowed


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
    settings, errors = assign_allowed(defaults, [(each.key, each.value) for each in wanted])
    return settings, tuple(wanted[place] for place in errors)


class Preset(Struct, frozen=True):
    """`overrides` as in a conversation."""

    name: str
    overrides: tuple[Override, ...]


def _preset(name: str, system_prompt: str, *overrides: tuple[str, object]) -> Preset:
    own = (Override("chat.system_prompt", system_prompt),) if system_prompt else ()
    return Preset(name, (*(Override(key, value) for key, value in overrides), *own))


BUILT_IN = (
    _preset(
        "Documents",
        "Answer from the attached documents. Quote the sentences you rely on. If the documents do not say"
        " it, say so.",
        ("sampling.temperature", 0.0),
    ),
    _preset(
        "Code edits",
        "Change only what the request names and keep everything else as it is. Return the whole file in one"
        " code block.",
        ("sampling.temperature", 0.0),
        ("sampling.max_tokens", 4096),
        ("prefill.mode", "off"),
    ),
    _preset(
        "Translation",
        "Translate the text you are given. Keep its meaning, tone and formatting. Add nothing of your own.",
        ("sampling.temperature", 0.0),
        ("sampling.max_tokens", 4096),
        ("prefill.mode", "off"),
    ),
    _preset(
        "JSON",
        "Answer with one valid JSON value and nothing else: no explanation, no code block.",
        ("sampling.temperature", 0.0),
    ),
    _preset(
        "Free chat",
        "",
        ("sampling.temperature", 0.7),
        ("sampling.top_p", 0.95),
        ("sampling.min_p", 0.05),
    ),
)


def known(own: Sequence[Preset]) -> tuple[Preset, ...]:
    """Returns the built-in and own presets by name, built-in ones first."""
    names = {preset.name for preset in own}
    return (*(preset for preset in BUILT_IN if preset.name not in names), *own)


def chosen(preset: Preset, defaults: Settings) -> Settings:
    """Returns the settings of a chat with this preset; values no longer allowed are left out."""
    return apply(defaults, preset.overrides)[0]


def name_of(settings: Settings, defaults: Settings, own: Sequence[Preset]) -> str:
    """Returns the preset with exactly these settings; empty if there is none."""
    found = (preset.name for preset in known(own) if chosen(preset, defaults) == settings)
    return "" if settings == defaults else next(found, "")


def with_preset(
    own: Sequence[Preset], name: str, settings: Settings, defaults: Settings, chosen: Collection[str] = ()
) -> tuple[Preset, ...]:
    """Returns the own presets with a new one, which replaces one of that name; `chosen` as in
    `differences`.
    """
    preset = Preset(name, differences(settings, defaults, chosen))
    return (*(each for each in own if each.name != name), preset)


def updated(
    own: Sequence[Preset], name: str, settings: Settings, defaults: Settings, chosen: Collection[str] = ()
) -> tuple[Preset, ...]:
    """Returns the own presets in order, with the settings of the named one replaced.

    It keeps its overrides, even those that now equal the defaults.
    """
    named = {override.key for preset in own if preset.name == name for override in preset.overrides}
    fresh = Preset(name, differences(settings, defaults, named.union(chosen)))
    return tuple(fresh if each.name == name else each for each in own)


def renamed(own: Sequence[Preset], name: str, new: str) -> tuple[Preset, ...]:
    """Returns the own presets in order, with the named one renamed to `new`."""
    return tuple(Preset(new, each.overrides) if each.name == name else each for each in own)


def find(name: str, own: Sequence[Preset]) -> Preset | None:
    """Returns the preset of that name; None if there is none."""
    return next((each for each in known(own) if each.name == name), None)


def without(own: Sequence[Preset], name: str) -> tuple[Preset, ...]:
    return tuple(each for each in own if each.name != name)
