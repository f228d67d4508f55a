"""`config.toml`: the command line's own defaults, in Draftlight's configuration folder.

`model` is the model of commands that load one; a table a group of settings, as for `--set`. What is
typed goes before it. A relative path in it starts at its folder. The window does not read it: it keeps
its own preferences.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.cli.console.parser import UsageError
from core.errors import SettingError
from core.settings import Settings, assign_all
from core.system.children import absolute_reference
from core.system.paths import config_dir


class Config(Struct, frozen=True):
    """What the file says; `path` is it."""

    path: Path
    model: str = ""
    settings: Settings = Settings()


def read_config(base: Settings | None = None) -> Config:
    """The file over `base` (None: ours), or nothing where there is none.

    Raises `UsageError` for a file that is no use.
    """
    path = config_dir() / "config.toml"
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Config(path, settings=base or Settings())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be used: {error}.", "Mend it or move it away.") from None
    model = found.pop("model", "")
    if not isinstance(model, str):
        raise UsageError(f"{path}: model is “{model}”.", 'Write it as model = "starter".')
    values: list[tuple[str, Any]] = []
    for group, fields in found.items():
        if not isinstance(fields, dict):
            near = difflib.get_close_matches(group, ["model"], 1)
            hint = "Did you mean model?" if near else "Settings stand in tables, as [sampling]."
            raise UsageError(f"{path}: there is no “{group}” outside a table.", hint)
        values += [(f"{group}.{name}", value) for name, value in fields.items()]
    try:
        settings = assign_all(base or Settings(), values, relative_to=path.parent)
    except SettingError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from None
    return Config(path, absolute_reference(model, path.parent), settings)
