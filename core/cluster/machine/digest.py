"""Digest: what a model's files hold, so that machines know that they have the same ones.

SHA-256 over the names and contents of config and weights. Reading a large model takes a while, so each file's
is kept by its size and times. No MLX.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import msgspec

from core.errors import ModelError
from core.system.paths import cache_dir

_PATTERNS = ("config.json", "model*.safetensors", "model.safetensors.index.json")


def model_digest(folder: Path) -> str:
    """Hexadecimal. Raises `ModelError` if a file cannot be read."""
    files = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern)})
    known = _known()
    total = hashlib.sha256()
    for path in files:
        try:
            status = path.stat()
            key = f"{path.resolve()} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
            if key not in known:
                with path.open("rb") as file:
                    known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror}.", "Download it again.") from error
        total.update(f"{path.name} {known[key]}\n".encode())
    _keep(known)
    return total.hexdigest()


def _known() -> dict[str, str]:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}  # none yet, or a file that cannot be read: files are read again


def _keep(known: dict[str, str]) -> None:
    try:
        _path().parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=_path().parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(known))
        os.replace(temporary, _path())
    except OSError:
        return  # reading again costs time and nothing else


def _path() -> Path:
    return cache_dir() / "digests.json"
