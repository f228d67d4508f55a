"""Grid: the settings that a bench tries with each drafter: fixed ones, and the product of lists.

`--set group.field=value` holds for all; `--grid group.field=1,2,3` tries each value, with each of
every other grid. Everything is checked against the settings' declarations before anything runs.
A setting of one drafter is nothing to another, so it is tried only with those that look at it, and
no configuration is measured twice.

Invariant: configurations come drafter by drafter, the last grid turning fastest, each with a name
of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.errors import SettingError
from core.settings import Settings, assign, assign_all, parse_all
from core.settings.declaration import find

MOST_CONFIGURATIONS = 256
# Which groups of settings belong to drafters, and who looks at them: `auto` asks ngram-mod's table.
_LOOKED_AT_BY: dict[str, tuple[str, ...]] = {
    "auto": ("auto",),
    "ngram_simple": ("ngram-simple",),
    "ngram_mod": ("ngram-mod", "auto"),
    "frequency": ("frequency",),
    "cacheback": ("cacheback",),
    "draft_model": ("draft-model",),
}
# What the benches have options of their own for.
OWN_OPTIONS = {"drafting.drafter": "--drafters", "sampling.max_tokens": "--max-tokens"}

Axes = Mapping[str, Sequence[object]]


class Configuration(Struct, frozen=True):
    """A drafter with settings. `given` is what was asked of it beyond the bench's own, by key."""

    name: str
    drafter: str
    given: dict[str, str]
    settings: Settings


def configurations(
    drafters: Sequence[str],
    common: Sequence[tuple[str, Any]],
    *,
    sets: Sequence[str] = (),
    grids: Sequence[str] = (),
    defaults: Axes | None = None,
    also: Axes | None = None,
    own_options: Mapping[str, str] = OWN_OPTIONS,
) -> list[Configuration]:
    """Every drafter with every combination of what it looks at. Raises `SettingError`.

    `common` is the bench's own and can be overruled. `defaults` are lists that are tried unless the
    same setting is given; `also` are lists that are always tried, the bench's own options.
    """
    wanted = _wanted(sets, grids, own_options)
    for key in also or {}:
        if key in wanted:
            raise SettingError(f"{key} was given twice.", "The bench has an option of its own for it.")
    axes: dict[str, Sequence[object]] = {
        **{key: values for key, values in (defaults or {}).items() if key not in wanted},
        **wanted,
        **(also or {}),
    }
    for key in wanted:
        if not any(_looks_at(drafter, key) for drafter in drafters):
            raise SettingError(
                f"None of {', '.join(drafters)} looks at {key}.", "Leave it out, or add its drafter."
            )
    chosen = {name: {key: axes[key] for key in axes if _looks_at(name, key)} for name in drafters}
    count = sum(_size(each) for each in chosen.values())
    if count > MOST_CONFIGURATIONS:
        raise SettingError(
            f"These are {count:,} configurations, and a bench tries at most {MOST_CONFIGURATIONS}.",
            "Give fewer values or fewer grids.",
        )
    found = []
    for drafter, its in chosen.items():
        varied = [key for key in its if len(its[key]) > 1 or key in wanted or key in (defaults or {})]
        for values in product(*its.values()):
            given = {key: str(value) for key, value in zip(its, values)}
            settings = assign_all(Settings(), [("drafting.drafter", drafter)])
            own = [(key, str(value)) for key, value in common if key not in given]
            told = [f"{_short(drafter, key)}={given[key]}" for key in varied]
            found.append(
                Configuration(
                    " ".join([drafter, *told]), drafter, given, parse_all(settings, _whole(own, given))
                )
            )
    return found


def with_draft_model(
    options: argparse.Namespace, chosen: Sequence[Configuration], model: Path, scratch: Path
) -> list[tuple[Configuration, Settings]]:
    """Each with its settings; who drafts with a draft model and names none has the bench's.

    That is `--draft-model`, else the first `--draft-layers` of `model`, made in `scratch`.
    """
    found = []
    reference = options.draft_model
    for each in chosen:
        settings = each.settings
        if each.drafter == "draft-model" and not settings.draft_model.model:
            if not reference:
                from core.bench.truncated import truncated_copy

                reference = str(truncated_copy(model, options.draft_layers, scratch / "draft"))
            settings = assign(settings, "draft_model.model", reference)
        found.append((each, settings))
    return found


def _wanted(
    sets: Sequence[str], grids: Sequence[str], own_options: Mapping[str, str]
) -> dict[str, list[str]]:
    """Key to the texts of its values, each allowed by its declaration."""
    found: dict[str, list[str]] = {}
    for flag, text in (*(("--set", each) for each in sets), *(("--grid", each) for each in grids)):
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SettingError(f"{flag} {text} has no value.", f"Write {flag} group.field=value.")
        setting = find(key)
        if setting.key in own_options:
            raise SettingError(
                f"{setting.key} is not set by {flag}.", f"Use {own_options[setting.key]} of the bench."
            )
        if setting.key in found:
            raise SettingError(f"{setting.key} was given twice.", "Give all its values in one --grid.")
        values = [each.strip() for each in value.split(",")] if flag == "--grid" else [value]
        if len(set(values)) < len(values):
            raise SettingError(f"{flag} {text} holds a value twice.", "Give each value once.")
        for each in values:
            _check_alone(setting.key, each)
        found[setting.key] = values
    return found


# What makes any allowed value of a field possible, where a rule spans it and another one.
_ROOM = {
    "ngram_simple.n_min": ("ngram_simple.n_max", "16"),
    "ngram_simple.n_max": ("ngram_simple.n_min", "1"),
    "cacheback.tree_tokens": ("cacheback.reserved_tokens", "0"),
    "cacheback.reserved_tokens": ("cacheback.tree_tokens", "256"),
}


def _check_alone(key: str, text: str) -> None:
    """Raises `SettingError` if the declaration refuses it; rules that span fields come with the whole."""
    room = _ROOM.get(key)
    parse_all(Settings(), [*([room] if room else []), (key, text)])


def _whole(own: list[tuple[str, str]], given: Mapping[str, str]) -> list[tuple[str, str]]:
    """All values; the longest match follows the shortest where only that was given."""
    pairs = [*own, *given.items()]
    shortest = given.get("ngram_simple.n_min", "")
    if "ngram_simple.n_max" not in given and shortest.isdigit():
        longest = max(Settings().ngram_simple.n_max, int(shortest))
        pairs.append(("ngram_simple.n_max", str(longest)))
    return pairs


def _looks_at(drafter: str, key: str) -> bool:
    users = _LOOKED_AT_BY.get(key.partition(".")[0])
    return users is None or drafter in users


def _short(drafter: str, key: str) -> str:
    """The field alone where it is the drafter's own."""
    group, _, name = key.partition(".")
    return name if group == drafter.replace("-", "_") else key


def _size(axes: Axes) -> int:
    size = 1
    for values in axes.values():
        size *= len(values)
    return size
