"""The secret that all machines of a cluster share, in a file that nobody but its owner can read."""

from __future__ import annotations

from pathlib import Path

from core.system.key_file import read_key
from core.system.paths import data_dir


def secret_path(given: str) -> Path:
    """The file that was named, or Draftlight's own."""
    return Path(given).expanduser() if given else data_dir() / "cluster-secret"


def read_secret(path: Path) -> bytes:
    """The secret in `path`. Raises `KeyFileError`: not there, no secret, or others can read it."""
    return read_key(path).encode()
