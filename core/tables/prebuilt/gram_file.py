"""A gram table as a file: what a model tends to say, in a few bytes a context.

    sizes    int32 [orders]            contexts of 0, 1, 2 … tokens
    keys     uint32 [n]                their keys, ascending inside each order
    totals   uint8 [n]                 how often each was met, coded
    counts   uint8 [n]                 how many followers each has, at least one
    ids      uint16 or uint32 [m]      all followers, those of one context together, likeliest first
    shares   uint8 [m]                 their probabilities, 255 being one

Nothing in a file is believed: sizes, sums, orders, shares and every id are checked before a table
is made of it, so a truncated, foreign or hostile file is an error with its name and never a wrong
table.
"""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np

from core.drafting.tables.gram_table import FULL_SHARE, GramTable, Level
from core.tables.container import Arrays, Refused
from core.tables.prebuilt.learned_file import LearnedKind

HIGHEST_ORDER = 8
_TYPES = {"sizes": "int32", "keys": "uint32", "totals": "uint8", "counts": "uint8", "shares": "uint8"}
_NAMES = (*_TYPES, "ids")


def save_grams(table: GramTable, path: Path, *, family: str, family_name: str, learned_from: str) -> None:
    """Write `table` atomically. Raises `TableError` if that fails."""
    levels = table.levels
    ids = np.concatenate([np.zeros(0, np.uint32), *(np.asarray(level.ids, np.uint32) for level in levels)])
    starts = [np.diff(np.asarray(level.starts, np.int64)) for level in levels]
    parts = {
        "sizes": np.array([len(level.keys) for level in levels], dtype=np.int32),
        "keys": np.concatenate([np.zeros(0, np.uint32), *(np.asarray(x.keys, np.uint32) for x in levels)]),
        "totals": np.frombuffer(b"".join(level.totals for level in levels), dtype=np.uint8),
        "counts": np.concatenate([np.zeros(0, np.int64), *starts]).astype(np.uint8),
        "ids": ids.astype(np.uint16) if not ids.size or int(ids.max()) < 2**16 else ids,
        "shares": np.frombuffer(b"".join(level.shares for level in levels), dtype=np.uint8),
    }
    GRAMS.write(path, parts, family=family, family_name=family_name, learned_from=learned_from)


def checked(parts: Arrays, vocabulary: int) -> GramTable:
    """A table of a file's arrays, with ids below `vocabulary`. Raises `Refused`."""
    _check(parts, vocabulary)
    levels, context, follower = [], 0, 0
    for size in parts["sizes"].tolist():
        counts = parts["counts"][context : context + size].astype(np.int64)
        followers = int(counts.sum())
        levels.append(
            Level(
                _packed(parts["keys"][context : context + size]),
                parts["totals"][context : context + size].tobytes(),
                _packed(np.concatenate([[0], np.cumsum(counts)])),
                _packed(parts["ids"][follower : follower + followers]),
                parts["shares"][follower : follower + followers].tobytes(),
            )
        )
        context, follower = context + size, follower + followers
    return GramTable(levels)


def _check(parts: Arrays, vocabulary: int) -> None:
    if parts.keys() != set(_NAMES):
        raise Refused("does not hold the arrays it should")
    if any(parts[name].dtype != dtype for name, dtype in _TYPES.items()) or (
        parts["ids"].dtype not in (np.uint16, np.uint32)
    ):
        raise Refused("has parts of the wrong types")
    if any(part.ndim != 1 for part in parts.values()) or not 0 < len(parts["sizes"]) <= HIGHEST_ORDER + 1:
        raise Refused("has parts of the wrong shapes")
    sizes, keys, counts = parts["sizes"].astype(np.int64), parts["keys"], parts["counts"].astype(np.int64)
    if int(sizes.min()) < 0 or int(sizes.sum()) != len(keys) or int(sizes[0]) > 1:
        raise Refused("has orders that do not add up")
    if not len(keys) == len(counts) == len(parts["totals"]) or len(parts["ids"]) != len(parts["shares"]):
        raise Refused("has parts that do not fit together")
    if (counts == 0).any() or int(counts.sum()) != len(parts["ids"]):
        raise Refused("has counts that do not add up")
    if len(parts["ids"]) and int(parts["ids"].max()) >= vocabulary:
        raise Refused(f"holds ids outside the model's vocabulary of {vocabulary:,}")
    order = np.repeat(np.arange(len(sizes)), sizes)
    placed = order << 32 | keys
    if (np.diff(placed) <= 0).any():
        raise Refused("has keys that are not in order")
    owner = np.repeat(np.arange(len(keys)), counts)
    shares = parts["shares"].astype(np.int64)
    rising = (np.diff(shares) > 0) & (np.diff(owner) == 0)
    # Each share was rounded, so a context's may sum to a little over one.
    sums = np.bincount(owner, weights=shares, minlength=len(keys))
    if (shares == 0).any() or rising.any() or (sums > FULL_SHARE + counts).any():
        raise Refused("has shares that are no probabilities")


def _packed(values: np.ndarray) -> array[int]:
    return array("I", values.astype(np.uint32).tobytes())


GRAMS = LearnedKind("draftlight-grams", 2, checked)
