"""The sections of the inspector and the summaries of closed ones. Pure; no Qt.

A section is a group of settings. The basics come first, with the choice of the drafter; groups named like a
drafter have its parameters, which are in the section Drafting and show only while it is selected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.controls.number_text import plain
from app.panels import strings
from app.session.chats.presets import Override
from core.settings import Setting, Settings, assign_all, declared, read, unused

DRAFTER_KEY = "drafting.drafter"
BASICS = "basics"
# All other groups are under Advanced.
_BASIC_KEYS = (
    "chat.system_prompt",
    DRAFTER_KEY,
    "decoding.exactness",
    "sampling.temperature",
    "sampling.max_tokens",
    "chat.thinking",
    "prefill.mode",
    "prefill.keep_pct",
)
_QUOTE_CHARACTERS = 24


@dataclass(frozen=True)
class Group:
    """One section. `drafters` maps a drafter's name to its settings."""

    name: str
    title: str
    settings: tuple[Setting, ...]
    drafters: dict[str, tuple[Setting, ...]]

    @property
    def all_settings(self) -> tuple[Setting, ...]:
        """The section's settings, with those of every drafter."""
        return (*self.settings, *(setting for members in self.drafters.values() for setting in members))


def groups(settings: Sequence[Setting] | None = None) -> tuple[Group, ...]:
    """Returns the sections: the basics, then the others in declaration order (default: all settings)."""
    settings = declared() if settings is None else settings
    by_key = {setting.key: setting for setting in settings}
    by_name: dict[str, list[Setting]] = {}
    basics = [by_key[key] for key in _BASIC_KEYS if key in by_key]
    if basics:
        by_name[BASICS] = basics
        by_name[DRAFTER_KEY.partition(".")[0]] = []
    for setting in settings:
        if setting not in basics:
            by_name.setdefault(setting.group, []).append(setting)
    drafter = next((setting for setting in settings if setting.key == DRAFTER_KEY), None)
    drafter_groups = {name.replace("-", "_"): name for name in (drafter.choices if drafter else ())}
    parameters = {
        drafter_groups[name]: tuple(members) for name, members in by_name.items() if name in drafter_groups
    }
    return tuple(
        Group(
            name=name,
            title=strings.GROUP_TITLES.get(name, name.replace("_", " ").capitalize()),
            settings=tuple(members),
            drafters=parameters if drafter is not None and name == drafter.group else {},
        )
        for name, members in by_name.items()
        if name not in drafter_groups
    )


def differs(group: Group, settings: Settings, defaults: Settings, chosen: Collection[str] = ()) -> bool:
    """Whether a setting of the section differs from the defaults or was `chosen` by hand."""
    return any(
        each.key in chosen or read(settings, each.key) != read(defaults, each.key)
        for each in group.all_settings
    )


def merged(settings: Settings, source: Settings, group: Group) -> Settings:
    """Returns `settings` with one section of `source`. Raises `SettingError` if the two are incompatible."""
    return assign_all(settings, [(each.key, read(source, each.key)) for each in group.all_settings])


def summary(group: Group, settings: Settings) -> str:
    """Returns the closed section's summary: its main values, or the first two if none are named.

    Settings without effect are left out.
    """
    idle = unused(settings)
    by_key = {setting.key: setting for setting in group.settings if setting.key not in idle}
    named = [pair for pair in strings.SUMMARIES.get(group.name, ()) if pair[0] in by_key]
    if not named:
        named = [(setting.key, f"{setting.title.lower()} {{}}") for setting in list(by_key.values())[:2]]
    parts = (pattern.format(_written(by_key[key], read(settings, key))) for key, pattern in named)
    return strings.SUMMARY_SEPARATOR.join(parts)


def described(overrides: Iterable[Override]) -> tuple[str, ...]:
    """Returns each setting with its value, as “Drafter: Off”."""
    by_key = {setting.key: setting for setting in declared()}
    known = ((by_key[each.key], each.value) for each in overrides if each.key in by_key)
    return tuple(f"{setting.title}: {_written(setting, value)}" for setting, value in known)


def _written(setting: Setting, value: Any) -> str:
    """Returns a value as text for people."""
    if setting.kind == "choice":
        return setting.labels.get(value, str(value))
    if setting.kind == "switch":
        return strings.ON if value else strings.OFF
    if setting.kind == "number":
        return plain(value)
    if setting.kind == "integer":
        return f"{value:,}" if setting.unit else str(value)
    words = " ".join(value.split())
    if not words:
        return setting.empty
    cut = words if len(words) <= _QUOTE_CHARACTERS else words[: _QUOTE_CHARACTERS - 1].rstrip() + "…"
    return strings.QUOTED.format(cut)
