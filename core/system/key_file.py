"""API key files, readable by their owner only. Keys are never logged."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from core.errors import RequestError

_BYTES = 32
_LEAST_CHARACTERS = 16
_MOST_BYTES = 4096


class KeyFileError(RequestError, code="bad-key-file"):
    """The key file is unusable."""


def new_key() -> str:
    """A random API key."""
    return f"dl-{secrets.token_urlsafe(_BYTES)}"


def read_key(path: Path) -> str:
    """The key in `path`. Raises `KeyFileError`, also if other users can read the file."""
    try:
        with path.open("rb") as file:
            others = os.name == "posix" and os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            key = file.read(_MOST_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not plain text"
        raise KeyFileError(f"Cannot read {path}: {why}.", "Choose a file that contains a key.") from None
    if others:
        raise KeyFileError(f"{path} is readable by other users.", f"Run: chmod 600 {path}")
    if len(key) < _LEAST_CHARACTERS or any(letter.isspace() for letter in key):
        raise KeyFileError(
            f"{path} does not contain a key: at least {_LEAST_CHARACTERS} characters without spaces.",
            "Remove the file to create a new key.",
        )
    return key


def write_key(path: Path, key: str) -> None:
    """Writes `key`; the file is private from its creation on. Raises `KeyFileError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key}\n")
    except OSError as error:
        raise KeyFileError(
            f"Cannot write {path}: {error.strerror}.", "Choose a file in a folder that you can write to."
        ) from None


def key_of(path: Path) -> tuple[str, bool]:
    """The key in `path`, and whether it was created now because the file did not exist."""
    if path.exists():
        return read_key(path), False
    key = new_key()
    write_key(path, key)
    return key, True
