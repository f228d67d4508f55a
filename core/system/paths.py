"""Draftlight's folders. `DRAFTLIGHT_HOME` replaces all of them, for tests and portable use.

The functions create nothing; writers create the folder first. They raise `RequestError` for a folder whose
name is not UTF-8, which MLX and Qt cannot open.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import platformdirs

from core.errors import RequestError, reason_of
from core.system.terminal import visible

_APP = "Draftlight"
_SHOWN_CHARACTERS = 200


def data_dir() -> Path:
    """Models, tables and chats."""
    home = _home()
    return home / "data" if home else _expanded(platformdirs.user_data_dir(_APP, appauthor=False))


def cache_dir() -> Path:
    """Files that can be recreated, such as machine profiles."""
    home = _home()
    return home / "cache" if home else _expanded(platformdirs.user_cache_dir(_APP, appauthor=False))


def config_dir() -> Path:
    """The command line's defaults."""
    return _home() or _expanded(platformdirs.user_config_dir(_APP, appauthor=False))


def models_dir() -> Path:
    """The folder with one subfolder per model."""
    return data_dir() / "models"


def tables_dir() -> Path:
    """The folder of the learned tables."""
    return data_dir() / "tables"


def resources_dir() -> Path:
    """Files that ship with Draftlight, next to the packages in a checkout and in a wheel."""
    return Path(__file__).resolve().parents[2] / "resources"


def shown(text: str) -> str:
    """`text` for use in a message: shortened, with unprintable characters escaped."""
    text = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return visible(text.encode("utf-8", "replace").decode())


def given_path(text: str, raising: type[RequestError] = RequestError) -> Path:
    """The user's path with `~` expanded; it may be missing.

    Raises `raising` if the text is empty or not a valid path, or the process has no access.
    """
    if not text:  # it would mean the current folder
        raise raising("The path is empty.", "Choose a file or a folder.")
    try:
        path = Path(text).expanduser()
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        name = max((len(part.encode("utf-8", "replace")) for part in Path(text).parts), default=0)
        size = f" Its longest part has {name:,} bytes." if error.errno == errno.ENAMETOOLONG else ""
        raise raising(
            f"Cannot use “{shown(text)}”: {error.strerror}.{size}",
            "Choose a readable file or folder; a name has at most 255 bytes.",
        ) from None
    except (ValueError, RuntimeError) as error:
        raise raising(
            f"“{shown(text)}” is not a valid path: {reason_of(error)}.",
            "Use a path in valid Unicode without null characters.",
        ) from None
    return path


def _home() -> Path | None:
    home = os.environ.get("DRAFTLIGHT_HOME")
    return _expanded(home) if home else None


def _expanded(folder: str) -> Path:
    """`folder` as an absolute path with `~` expanded; `~unknown` is left unchanged."""
    path = Path(os.path.expanduser(folder)).absolute()
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RequestError(
            f"Draftlight cannot keep its files in “{shown(str(path))}”: the name is not UTF-8.",
            "Set DRAFTLIGHT_HOME to a folder with another name.",
        ) from None
    return path
