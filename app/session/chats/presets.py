"""Presets: a system prompt and settings together, under a name, for a kind of work. Pure.

A preset is the differences from Draftlight's own settings; what it does not name is as the person has it
by default. Five come along; a person's own are kept in the preferences, and one of the same name hides ours.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, count

from msgspec import Struct

from app.session.chats.overrides import Override, apply, differences
from core.settings import Settings


class Preset(Struct, frozen=True):
    """`overrides` as a chat has them."""

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
        ("prefill.finish_reading", True),
    ),
    _preset(
        "Code edits",
        "Change only what is asked for and keep everything else as it is. Give the whole file back in one"
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
    """Ours and a person's own, by name, ours first."""
    names = {preset.name for preset in own}
    return (*(preset for preset in BUILT_IN if preset.name not in names), *own)


def chosen(preset: Preset, defaults: Settings) -> Settings:
    """The settings of a chat that takes it; what is not allowed any more is left out."""
    return apply(defaults, preset.overrides)[0]


def name_of(settings: Settings, defaults: Settings, own: Sequence[Preset]) -> str:
    """The preset that gives just these settings; empty if none does."""
    found = (preset.name for preset in known(own) if chosen(preset, defaults) == settings)
    return "" if settings == defaults else next(found, "")


def with_preset(
    own: Sequence[Preset], name: str, settings: Settings, defaults: Settings, chosen: Collection[str] = ()
) -> tuple[Preset, ...]:
    """A person's own with one more, in the place of the one of that name; `chosen` as for `differences`."""
    preset = Preset(name, differences(settings, defaults, chosen))
    return (*(each for each in own if each.name != name), preset)


def updated(
    own: Sequence[Preset], name: str, settings: Settings, defaults: Settings, chosen: Collection[str] = ()
) -> tuple[Preset, ...]:
    """A person's own, in their order, with the one of that name having `settings`.

    It goes on naming what it named, also where that is no different from the defaults.
    """
    named = {override.key for preset in own if preset.name == name for override in preset.overrides}
    fresh = Preset(name, differences(settings, defaults, named.union(chosen)))
    return tuple(fresh if each.name == name else each for each in own)


def renamed(own: Sequence[Preset], name: str, new: str) -> tuple[Preset, ...]:
    """A person's own, in their order, with the one of that name called `new`."""
    return tuple(Preset(new, each.overrides) if each.name == name else each for each in own)


def with_imported(own: Sequence[Preset], found: Sequence[Preset]) -> tuple[Preset, ...]:
    """A person's own with those of a file: one that is there already stays one, and none is replaced.

    Where there is another of the same name, the file's gets a number behind its own.
    """
    for preset in found:
        there = known(own)
        if any(each.overrides == preset.overrides and _is_called(each, preset.name) for each in there):
            continue
        taken = {each.name for each in there}
        names = chain((preset.name,), (_numbered(preset.name, number) for number in count(2)))
        own = (*own, Preset(next(name for name in names if name not in taken), preset.overrides))
    return tuple(own)


def _numbered(name: str, number: int) -> str:
    return f"{name} ({number})"


def _is_called(preset: Preset, name: str) -> bool:
    """So, or so with a number."""
    return preset.name == name or preset.name.startswith(f"{name} (")


def find(name: str, own: Sequence[Preset]) -> Preset | None:
    """The preset of that name; None if there is none."""
    return next((each for each in known(own) if each.name == name), None)


def without(own: Sequence[Preset], name: str) -> tuple[Preset, ...]:
    """A person's own without the one of that name."""
    return tuple(each for each in own if each.name != name)
