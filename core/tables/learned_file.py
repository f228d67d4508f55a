"""What every file of evidence learned beforehand has in common: safetensors, a header, no trust.

The header says which format and version it is, which tokenizer family its ids belong to, and what
it was learned from. Files are written whole or not at all. Knows no kind of table.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from core.errors import TableError

# The shipped tables are under 3 MB together; nothing sensible is near this.
_MOST_BYTES = 256 * 1024 * 1024
Parts = dict[str, NDArray[Any]]


def write(path: Path, parts: Mapping[str, NDArray[Any]], header: Mapping[str, str]) -> None:
    """Write the file atomically. Raises `TableError` if the place cannot take it."""
    content = save(dict(parts), metadata={**header, "sha256": _digest(parts, header)})
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise TableError(f"{path} cannot be written: {error}.", "Choose a place with room for it.") from error


def read(
    path: Path, names: Iterable[str], *, kind: str, version: str, family: str, family_name: str
) -> tuple[Parts, dict[str, str]]:
    """The arrays and the header of a file of `kind` for `family`.

    Raises `TableError` that names the file and what is wrong with it; of another family, both.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise refused(path, f"it is larger than {_MOST_BYTES // 2**20} MiB")
        with safe_open(str(path), framework="numpy") as file:
            header = dict(file.metadata() or {})
            _check(path, header, kind, version, family, family_name)
            parts = {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
        raise refused(path, f"it cannot be read ({error})") from error
    if header.pop("sha256", "") != _digest(parts, header):
        raise refused(path, "it is damaged: its checksum does not match")
    return parts, header


def family_of(path: Path) -> str | None:
    """The family that the file says it was learned for; None if it says nothing that can be read."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            return dict(file.metadata() or {}).get("family")
    except (OSError, SafetensorError, ValueError, TypeError):
        return None


def refused(path: Path, why: str) -> TableError:
    """The error for a file that is not what it should be."""
    return TableError(f"{path.name} cannot be used as a table: {why}.", "Build it again, or choose another.")


def _check(
    path: Path, header: Mapping[str, str], kind: str, version: str, family: str, family_name: str
) -> None:
    if header.get("format") != kind:
        raise refused(path, f"it is not a {kind.removeprefix('draftlight-')} table")
    if header.get("version") != version:
        raise refused(path, f"it has format version {header.get('version')}, this Draftlight reads {version}")
    if header.get("family") != family:
        named = header.get("family_name") or "another family"
        raise TableError(
            f"{path.name} was learned for the {named} tokenizer, and the model has the {family_name} one.",
            f"Choose a table of the {family_name} family, or none.",
        )


def _digest(parts: Mapping[str, NDArray[Any]], header: Mapping[str, str]) -> str:
    """Over everything the file says: the header's words, and each array's name, type, shape and bytes."""
    digest = hashlib.sha256(repr(sorted(header.items())).encode())
    for name, part in sorted(parts.items()):
        digest.update(f"{name} {part.dtype} {part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
