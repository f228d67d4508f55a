"""Where Draftlight keeps things. `DRAFTLIGHT_HOME` moves all of it, for tests and portable use.

Nothing is created here; whoever writes makes the folder first.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import platformdirs

from core.errors import RequestError

_APP = "Draftlight"
_SHOWN_CHARACTERS = 200


def data_dir() -> Path:
    """Models, tables and chats."""
    home = _home()
    return home / "data" if home else _expanded(platformdirs.user_data_dir(_APP, appauthor=False))


def cache_dir() -> Path:
    """Files that can be made again, such as machine profiles."""
    home = _home()
    return home / "cache" if home else _expanded(platformdirs.user_cache_dir(_APP, appauthor=False))


def config_dir() -> Path:
    """The command line's defaults."""
    return _home() or _expanded(platformdirs.user_config_dir(_APP, appauthor=False))


def models_dir() -> Path:
    """One folder a model."""
    return data_dir() / "models"


def tables_dir() -> Path:
    """The tables of every tokenizer family."""
    return data_dir() / "tables"


def resources_dir() -> Path:
    """Files that ship with Draftlight, beside the packages in a checkout and in a wheel alike."""
    return Path(__file__).resolve().parents[2] / "resources"


def shown(text: str) -> str:
    """What somebody gave as a name, fit for a sentence: not too long, nothing that cannot be printed."""
    text = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return text.encode("utf-8", "replace").decode().replace("\0", "\\0")


def given_path(text: str, raising: type[RequestError] = RequestError) -> Path:
    """The path that somebody gave, its `~` expanded; it need not be there.

    Raises `raising` if no file can be called so, or if this process may not look there.
    """
    try:
        path = Path(text).expanduser()
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        name = max((len(part.encode("utf-8", "replace")) for part in Path(text).parts), default=0)
        size = f" Its longest part has {name:,} bytes." if error.errno == errno.ENAMETOOLONG else ""
        raise raising(
            f"“{shown(text)}” cannot be used: {error.strerror}.{size}",
            "Give the path of a file or folder that this user may read; a name has 255 bytes at most.",
        ) from None
    except (ValueError, RuntimeError) as error:
        raise raising(
            f"“{shown(text)}” is not a path: {error}.", "Give one without null characters, in valid Unicode."
        ) from None
    return path


def _home() -> Path | None:
    home = os.environ.get("DRAFTLIGHT_HOME")
    return _expanded(home) if home else None


def _expanded(folder: str) -> Path:
    """Absolute, with `~` as the user's folder; the name of an unknown user stays as it is."""
    return Path(os.path.expanduser(folder)).absolute()
