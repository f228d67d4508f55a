"""Where Draftlight keeps things. `DRAFTLIGHT_HOME` moves all of it, for tests and portable use.

Nothing is created here; whoever writes makes the folder first.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_APP = "Draftlight"


def data_dir() -> Path:
    """Models, tables and chats."""
    home = _home()
    return home / "data" if home else Path(platformdirs.user_data_dir(_APP, appauthor=False))


def cache_dir() -> Path:
    """What can be made again: machine profiles, patched libraries."""
    home = _home()
    return home / "cache" if home else Path(platformdirs.user_cache_dir(_APP, appauthor=False))


def models_dir() -> Path:
    """One folder a model."""
    return data_dir() / "models"


def tables_dir() -> Path:
    """The tables of every tokenizer family."""
    return data_dir() / "tables"


def resources_dir() -> Path:
    """Files that ship with Draftlight, beside the packages in a checkout and in a wheel alike."""
    return Path(__file__).resolve().parents[1] / "resources"


def _home() -> Path | None:
    home = os.environ.get("DRAFTLIGHT_HOME")
    return Path(home).expanduser().absolute() if home else None
