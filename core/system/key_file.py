"""A key in a file of its own, which nobody but its owner can read. It is never logged."""

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


class KeyFileError(RequestError):
    """A key's file cannot be used."""

    code = "bad-key-file"


def new_key() -> str:
    """One that nobody guesses."""
    return f"dl-{secrets.token_urlsafe(_BYTES)}"


def read_key(path: Path) -> str:
    """The key in `path`. Raises `KeyFileError`, also where others can read it."""
    try:
        with path.open("rb") as file:
            others = os.name == "posix" and os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            key = file.read(_MOST_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not plain text"
        raise KeyFileError(f"{path} cannot be read: {why}.", "Name a file with a key in it.") from None
    if others:
        raise KeyFileError(f"Others than its owner can read {path}.", f"Run: chmod 600 {path}")
    if len(key) < _LEAST_CHARACTERS or any(letter.isspace() for letter in key):
        raise KeyFileError(
            f"{path} holds no key: one has at least {_LEAST_CHARACTERS} characters and no spaces.",
            "Remove the file to have one made.",
        )
    return key


def write_key(path: Path, key: str) -> None:
    """Write it, readable by its owner alone from the first moment. Raises `KeyFileError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key}\n")
    except OSError as error:
        raise KeyFileError(
            f"{path} cannot be written: {error.strerror}.", "Name a file in a folder of yours."
        ) from None


def key_of(path: Path) -> tuple[str, bool]:
    """The key in `path`, and whether it was made just now because there was no file."""
    if path.exists():
        return read_key(path), False
    key = new_key()
    write_key(path, key)
    return key, True
