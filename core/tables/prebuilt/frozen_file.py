"""A frozen table as a file: safetensors with the family it belongs to in its header.

    leaders    [n, LL]   the leaders, most frequent first
    followers  [m, FL]   all followers, those of one leader together, most frequent first
    counts     [n]       how many of them belong to each leader; they sum to m

Ids are uint16 where all of them fit, else int32; counts are int32.

Nothing in a file is believed: sizes, shapes, sums and every id are checked before a table is made
of it, so a truncated, foreign or hostile file is an error with its name and never a wrong table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.drafting.tables.frozen_table import FrozenTable
from core.errors import TableError
from core.events import ModelInfo
from core.settings.drafting import Cacheback
from core.tables.container import Arrays, Refused
from core.tables.prebuilt.learned_file import LearnedKind

_PARTS = {"leaders", "followers", "counts"}
_ID_TYPES = (np.uint16, np.int32)


def save_frozen(table: FrozenTable, path: Path, *, family: str, family_name: str, learned_from: str) -> None:
    """Write `table` atomically. All leaders have one length, and so have all followers."""
    entries = table.entries()
    leaders = _narrow(np.array(list(entries), dtype=np.int32))
    followers = _narrow(np.array([gram for held in entries.values() for gram in held], dtype=np.int32))
    counts = np.array([len(held) for held in entries.values()], dtype=np.int32)
    parts = {"leaders": leaders, "followers": followers, "counts": counts}
    FROZEN.write(path, parts, family=family, family_name=family_name, learned_from=learned_from)


def chosen_table(settings: Cacheback, info: ModelInfo) -> FrozenTable:
    """The table that `settings` name. Raises `TableError`, also if its leaders do not fit."""
    path = Path(settings.frozen_file).expanduser()
    held = FROZEN.load(path, family=info.family, family_name=info.family_name, vocabulary=info.vocabulary)
    length = leader_tokens(held)
    if length != settings.leader_tokens:
        raise TableError(
            f"{path.name} has leaders of {length} tokens, and {settings.leader_tokens} are looked up.",
            f"Set cacheback.leader_tokens to {length}, or choose another table.",
        )
    return held


def leader_tokens(table: FrozenTable) -> int:
    """How many tokens its leaders have; 0 if it is empty."""
    return len(next(iter(table.entries()), ()))


def checked(parts: Arrays, vocabulary: int) -> FrozenTable:
    """A table of a file's arrays, with ids below `vocabulary`. Raises `Refused`."""
    if parts.keys() != _PARTS:
        raise Refused("does not hold the arrays it should")
    leaders, followers, counts = parts["leaders"], parts["followers"], parts["counts"]
    if counts.dtype != np.int32 or any(ids.dtype not in _ID_TYPES for ids in (leaders, followers)):
        raise Refused("has ids that are not 16- or 32-bit integers")
    if leaders.ndim != 2 or followers.ndim != 2 or counts.shape != leaders.shape[:1]:
        raise Refused("has parts that do not fit together")
    if counts.size and (int(counts.min()) < 1 or int(counts.sum(dtype=np.int64)) != len(followers)):
        raise Refused("has counts that do not add up")
    for ids in (leaders, followers):
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= vocabulary):
            raise Refused(f"holds ids outside the model's vocabulary of {vocabulary:,}")
    grams = [tuple(gram) for gram in followers.tolist()]
    ends = np.cumsum(counts).tolist()
    starts = [0, *ends[:-1]] if ends else []
    keys = [tuple(leader) for leader in leaders.tolist()]
    if len(set(keys)) != len(keys):
        raise Refused("has a leader that occurs twice")
    return FrozenTable({key: tuple(grams[a:b]) for key, a, b in zip(keys, starts, ends)})


def _narrow(ids: NDArray[np.int32]) -> NDArray[Any]:
    return ids.astype(np.uint16) if ids.size and int(ids.max()) < 1 << 16 else ids


FROZEN = LearnedKind("draftlight-frozen", 2, checked)
