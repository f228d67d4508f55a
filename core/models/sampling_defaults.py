"""A model's own sampling: what its folder's generation_config.json says, as settings of ours.

The file's rules are those of transformers: without `do_sample` nothing is known of it, `do_sample: false` is
greedy whatever the temperature beside it, and `do_sample: true` without a temperature means 1. A top-k of 0
or below means all. What our settings do not allow is moved to the nearest value that they do. No MLX.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from core.events import ModelDefault
from core.settings import FROM_MODEL
from core.settings.declaration import Setting, find

FILE = "generation_config.json"


def sampling_defaults(folder: Path) -> tuple[tuple[ModelDefault, ...], str]:
    """What the model in `folder` asks for, and what is wrong with its file; both empty without one.

    A value that is no number is left out and named; the others still hold.
    """
    path = folder / FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return (), ""
    except (OSError, ValueError, RecursionError) as error:
        return (), f"{FILE} cannot be read ({error}); Draftlight’s own sampling is used."
    if not isinstance(said, dict):
        return (), f"{FILE} holds no settings; Draftlight’s own sampling is used."
    found: list[ModelDefault] = []
    wrong: list[str] = []
    for key, given in _wanted(said).items():
        if not _is_number(given):
            wrong.append(find(key).name)
        else:
            found.append(ModelDefault(key, _within(find(key), given), float(given)))
    problem = f"{FILE} gives no number for {', '.join(wrong)}." if wrong else ""
    return tuple(found), problem


def _wanted(said: dict[str, Any]) -> dict[str, Any]:
    """What is said of our settings, by their keys; null is nothing said."""
    names = {key: key.partition(".")[2] for key in FROM_MODEL}
    wanted = {key: said[name] for key, name in names.items() if said.get(name) is not None}
    if said.get("do_sample") is False:
        wanted["sampling.temperature"] = 0.0
    elif said.get("do_sample") is True:
        wanted.setdefault("sampling.temperature", 1.0)
    if _is_number(top_k := wanted.get("sampling.top_k", 0)) and top_k < 0:
        wanted["sampling.top_k"] = 0
    return dict(sorted(wanted.items(), key=lambda item: FROM_MODEL.index(item[0])))


def _is_number(given: Any) -> bool:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    # A whole number may be too long for anything.
    return abs(given) < 2**53 and math.isfinite(given)


def _within(setting: Setting, given: float) -> float:
    """The nearest value that `setting` allows."""
    low, high = setting.minimum or 0.0, setting.maximum if setting.maximum is not None else given
    if setting.minimum_open:
        low += setting.step or 0.0
    value = float(min(max(given, low), high))
    return float(round(value)) if setting.kind == "integer" else value
