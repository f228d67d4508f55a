"""A frozen table as a file: safetensors with the family it belongs to in its header.

    leaders    int32 [n, LL]   the leaders, most frequent first
    followers  int32 [m, FL]   all followers, those of one leader together, most frequent first
    counts     int32 [n]       how many of them belong to each leader; they sum to m

Nothing in a file is believed: sizes, shapes, sums and every id are checked before a table is made
of it, so a truncated, foreign or hostile file is an error with its name and never a wrong table.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from core.drafting.frozen_table import FrozenTable
from core.errors import TableError

FORMAT = "draftlight-frozen"
VERSION = "1"
# The shipped tables are under 3 MB together; nothing sensible is near this.
_MOST_BYTES = 256 * 1024 * 1024


def save_frozen(table: FrozenTable, path: Path, *, family: str, family_name: str, learned_from: str) -> None:
    """Write `table` atomically. All leaders have one length, and so have all followers."""
    entries = table.entries()
    leaders = np.array(list(entries), dtype=np.int32)
    followers = np.array([gram for held in entries.values() for gram in held], dtype=np.int32)
    counts = np.array([len(held) for held in entries.values()], dtype=np.int32)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "family": family,
        "family_name": family_name,
        "learned_from": learned_from,
    }
    content = save({"leaders": leaders, "followers": followers, "counts": counts}, metadata=header)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load_frozen(path: Path, *, family: str, family_name: str, vocabulary: int) -> FrozenTable:
    """The table in `path`, for a model of `family` with ids below `vocabulary`.

    Raises `TableError` that names the file and what is wrong with it; of another family, both.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _refused(path, f"it is larger than {_MOST_BYTES // 2**20} MiB")
        with safe_open(str(path), framework="numpy") as file:
            header = dict(file.metadata() or {})
            _check_header(path, header, family, family_name)
            parts = {name: file.get_tensor(name) for name in ("leaders", "followers", "counts")}
    except (OSError, SafetensorError, ValueError, TypeError) as error:
        raise _refused(path, f"it cannot be read ({error})") from error
    return _checked(path, parts, vocabulary)


def _check_header(path: Path, header: dict[str, Any], family: str, family_name: str) -> None:
    if header.get("format") != FORMAT:
        raise _refused(path, "it is not a frozen table")
    if header.get("version") != VERSION:
        raise _refused(
            path, f"it has format version {header.get('version')}, this Draftlight reads {VERSION}"
        )
    if header.get("family") != family:
        named = header.get("family_name") or "another family"
        raise TableError(
            f"{path.name} was learned for the {named} tokenizer, and the model has the {family_name} one.",
            f"Choose a table of the {family_name} family, or none.",
        )


def _checked(path: Path, parts: dict[str, NDArray[Any]], vocabulary: int) -> FrozenTable:
    leaders, followers, counts = parts["leaders"], parts["followers"], parts["counts"]
    if any(part.dtype != np.int32 for part in parts.values()):
        raise _refused(path, "its ids are not 32-bit integers")
    if leaders.ndim != 2 or followers.ndim != 2 or counts.shape != leaders.shape[:1]:
        raise _refused(path, "its parts do not fit together")
    if counts.size and (int(counts.min()) < 1 or int(counts.sum(dtype=np.int64)) != len(followers)):
        raise _refused(path, "its counts do not add up")
    for ids in (leaders, followers):
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= vocabulary):
            raise _refused(path, f"it holds ids outside the model's vocabulary of {vocabulary:,}")
    grams = [tuple(gram) for gram in followers.tolist()]
    ends = np.cumsum(counts).tolist()
    starts = [0, *ends[:-1]] if ends else []
    keys = [tuple(leader) for leader in leaders.tolist()]
    if len(set(keys)) != len(keys):
        raise _refused(path, "a leader occurs twice")
    return FrozenTable({key: tuple(grams[a:b]) for key, a, b in zip(keys, starts, ends)})


def _refused(path: Path, why: str) -> TableError:
    return TableError(f"{path.name} cannot be used as a table: {why}.", "Build it again, or choose another.")
