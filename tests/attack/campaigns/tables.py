"""Damaged table files against the real loaders: shared n-gram tables, gram tables, frozen tables.

A good file of each kind is made once. A case damages it (flipped bytes, cut or grown, zeros, a lying
header with a checksum that is right, another family, a newer version, a folder or nothing in its place)
and loads it as a model of its family does. It must be refused in words or hold what it held before; a
shared table must still be on the disk, in its place or set aside.
"""

from __future__ import annotations

import random
import shutil
import struct
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from core.errors import TableError
from core.tables.files import FORMAT, InvalidFileError, TableHeader, decode, encode
from core.tables.prebuilt import FROZEN, GRAMS, LearnedHeader, save_frozen, save_grams
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.damage import DAMAGES
from tests.core.drafting.support import frozen_table
from tests.core.tables.support import FAMILY, FILE, OTHER, VOCABULARY, Home, content
from tests.tuning.gram_count import GramCounter, Pruning

_SLOW_S = 5.0
_MOST_BYTES = 300 * 2**20
_KINDS = ("shared", "grams", "texts", "frozen")


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as scratch:
        good = _good(Path(scratch))
        whole = {kind: _load(kind, path) for kind, path in good.items()}
        tracemalloc.start()
        try:
            for case in cases:
                yield _case(seed, case, good, whole, Path(scratch) / "case")
        finally:
            tracemalloc.stop()


def _good(folder: Path) -> dict[str, Path]:
    home = Home(folder / "shared").open().learn(200)
    home.memory.save()
    home.memory.close()
    rng = random.Random(1)
    counter = GramCounter(3)
    counter.add([], [rng.randrange(40) for _ in range(2000)])
    grams, texts, frozen = (folder / f"{name}.safetensors" for name in ("grams", "texts", "frozen"))
    for path in (grams, texts):
        save_grams(
            counter.table(Pruning(most_bytes=9000, highest_order=3)),
            path,
            family=FAMILY,
            family_name="A",
            learned_from="a test",
        )
    table = frozen_table([rng.randrange(30) for _ in range(400)], 1, 3, most=9)
    save_frozen(table, frozen, family=FAMILY, family_name="A", learned_from="a test")
    return {"shared": folder / "shared" / FILE, "grams": grams, "texts": texts, "frozen": frozen}


def _load(kind: str, path: Path) -> Any:
    """What the loader makes of the file; None if it refuses it in words."""
    if kind == "shared":
        home = Home(path.parent).open()
        held = content(home.table)
        notes = home.notes
        home.memory.close()
        return held if held or not notes else None
    try:
        if kind == "frozen":
            return FROZEN.load(path, family=FAMILY, family_name="A", vocabulary=VOCABULARY).entries()
        levels = list(GRAMS.load(path, family=FAMILY, family_name="A", vocabulary=VOCABULARY).levels)
        while levels and not len(levels[-1].keys):  # an order without contexts says nothing
            levels.pop()
        return levels
    except TableError as error:
        if not error.message:
            raise AssertionError("it was refused without a word") from error
        return None


def _case(seed: int, case: int, good: dict[str, Path], whole: dict[str, Any], folder: Path) -> Outcome:
    rng = case_random("tables", seed, case)
    kind = _KINDS[case % len(_KINDS)]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = folder / good[kind].name
    way = rng.choice(_WAYS)
    damaged = way(good[kind].read_bytes(), rng)
    if damaged is None:
        path.mkdir()
    else:
        path.write_bytes(damaged)
    tracemalloc.reset_peak()
    started = time.perf_counter()
    try:
        found = _load(kind, path)
    except BaseException as error:
        return Outcome(case, f"{kind}, {way.__name__}: {type(error).__name__}: {error}")
    took_s, peak = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
    fault = ""
    # A header may lie about what is not content (who taught it, when): then all that it held is there.
    if found is not None and found != whole[kind]:
        fault = "what was loaded is not what was saved"
    elif damaged is not None and not any(
        each.is_file() and each.read_bytes() == damaged for each in folder.iterdir()
    ):
        fault = "the damaged file is gone" if found is None else ""
    elif took_s > _SLOW_S:
        fault = f"it took {took_s:.1f} s"
    elif peak > _MOST_BYTES:
        fault = f"it took {peak:,} bytes of memory"
    counts = {"refused": float(found is None), "loaded whole": float(found is not None)}
    peaks = {"load_ms": took_s * 1000, "load_mib": peak / 2**20}
    return Outcome(case, f"{kind}, {way.__name__}: {fault}" if fault else "", counts, peaks)


def _lying_header(data: bytes, rng: random.Random) -> bytes:
    """A field of another value, and a checksum that is right."""
    header, arrays = _opened(data)
    fields = msgspec.to_builtins(header)
    name = rng.choice(list(fields))
    lies = (0, -1, 2**31, 2**63 - 1, 1.5, None, "", "x" * 5000, [], {}, True, OTHER)
    fields[name] = rng.choice(lies)
    return _encoded(fields, arrays)


def _other_family(data: bytes, rng: random.Random) -> bytes:
    header, arrays = _opened(data)
    return _encoded({**msgspec.to_builtins(header), "family": OTHER}, arrays)


def _newer(data: bytes, rng: random.Random) -> bytes:
    header, arrays = _opened(data)
    return _encoded({**msgspec.to_builtins(header), "version": rng.choice((0, 2, 99, 2**60))}, arrays)


def _lying_array(data: bytes, rng: random.Random) -> bytes:
    """An array cut, empty, missing, of another type, or removed; the checksum is right."""
    header, arrays = _opened(data)
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    match rng.randrange(5):
        case 0:
            arrays[name] = array[: rng.randrange(len(array) or 1)].copy()
        case 1:
            arrays[name] = np.concatenate([array, array])
        case 2:
            arrays[name] = np.full(len(array), rng.choice((np.nan, -1.0, 1e300)))
        case 3:
            arrays[name] = array.reshape(1, -1).copy()
        case _:
            del arrays[name]
    return _encoded(msgspec.to_builtins(header), arrays)


_WAYS: tuple[Callable[[bytes, random.Random], bytes | None], ...] = (
    *DAMAGES,
    *(_lying_header, _lying_header, _other_family, _newer, _lying_array, _lying_array),
)


def _opened(data: bytes) -> tuple[Any, dict[str, Any]]:
    found = msgspec.json.decode(_texts(data)["draftlight"])
    header = TableHeader if found["format"] == FORMAT else LearnedHeader
    try:
        return decode(data, header, found["format"], found["version"])
    except InvalidFileError as error:  # the good file itself
        raise AssertionError("the file to damage is no good") from error


def _texts(data: bytes) -> dict[str, str]:
    length = struct.unpack("<Q", data[:8])[0]
    texts: dict[str, str] = msgspec.json.decode(data[8 : 8 + length])["__metadata__"]
    return texts


def _encoded(fields: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    made = msgspec.defstruct("Lying", [(name, Any) for name in fields])
    return encode(made(**fields), arrays)


CAMPAIGN = Campaign(
    "tables",
    "A damaged table file is refused in words and kept, or holds what it held; nothing else, ever",
    150,
    10_000,
    _run,
)
