"""Files of tables: what goes in comes out, and nothing else comes out."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from core.drafting.cacheback import FrozenTable
from core.drafting.gram_counts import GramCounts
from core.drafting.ngram_mod import ID_END, Entries, NgramTable, TableWriter
from core.drafting.shared_tables import SharedTable
from core.events import TableFigures
from core.tables.files import InvalidFileError, SavedTable, decode_table, encode, encode_table, make_header
from core.tables.prebuilt import FROZEN, GRAMS, save_frozen, save_grams
from tests.core.tables.support import FAMILY, SLOTS, VOCABULARY, fill
from tests.tuning.gram_count import GramCounter, Pruning

counts = st.integers(0, 2**50)


def saved(table: SharedTable, **changes: Any) -> SavedTable:
    facts: dict[str, Any] = {
        "family": FAMILY,
        "family_name": "Toy",
        "n": table.n,
        "figures": table.figures(),
        "created_s": 1.5,
        "updated_s": 2.5,
        **changes,
    }
    return SavedTable(make_header(**facts), table.entries())


def small(table: SharedTable | None = None) -> bytes:
    if table is None:
        table = NgramTable(16, SLOTS)
        fill(table, 12)
    return encode_table(saved(table))


def short_ngrams() -> GramCounts:
    table = GramCounts(SLOTS)
    for _ in range(3):
        table.learn((), [1, 2, 3, 4, 5, 1, 2, 4])
    return table


@given(
    st.dictionaries(
        st.integers(0, SLOTS - 1), st.tuples(st.integers(0, ID_END - 1), st.integers(0, 255)), max_size=60
    ),
    st.tuples(counts, counts, counts, counts, counts, counts),
    st.text(max_size=300),
)
@settings(deadline=None)
def test_what_goes_in_comes_out(
    held: dict[int, tuple[int, int]], numbers: tuple[int, ...], name: str
) -> None:
    name = name.encode("utf-8", "replace").decode()
    slots = sorted(held)
    entries = Entries(
        np.array(slots, np.uint32),
        np.array([held[slot][0] for slot in slots], np.uint32),
        np.array([held[slot][1] for slot in slots], np.uint8),
    )
    table = NgramTable(9, SLOTS)
    table.restore(entries, TableFigures(len(slots), SLOTS, *numbers))
    out = decode_table(encode_table(saved(table, family_name=name)))
    other = NgramTable(9, SLOTS)
    other.restore(out.entries, out.header.figures)
    assert other.figures() == table.figures()
    assert out.header.family_name == name[:200]
    for part in ("slots", "tokens", "ages"):
        assert getattr(other.entries(), part).tolist() == getattr(table.entries(), part).tolist()


@pytest.mark.parametrize("tokens", [0, 1, 40, SLOTS])  # the last ones fill it
@pytest.mark.parametrize("kind", [GramCounts, partial(NgramTable, 16)])
def test_a_learned_table_comes_out_as_it_went_in(kind: Callable[[int], SharedTable], tokens: int) -> None:
    table, other, rng = kind(SLOTS), kind(SLOTS), random.Random(tokens)
    text = [rng.randrange(40) for _ in range(tokens)]
    if isinstance(table, GramCounts):
        table.learn((), text)
    else:
        TableWriter(table).read(text)
    out = decode_table(small(table))
    other.restore(out.entries, out.header.figures)
    assert other.figures() == table.figures()
    for part in Entries.__struct_fields__:
        assert getattr(other.entries(), part).tolist() == getattr(table.entries(), part).tolist()


def test_thousands_of_damaged_files_are_all_refused() -> None:
    """Seeded: cut, flipped, overwritten, repeated, put together from parts. None crashes, none loads."""
    whole: dict[bytes, Callable[[bytes], object]] = {
        small(): decode_table,
        small(short_ngrams()): decode_table,
        learned_content("grams"): GRAMS.decode,
        learned_content("frozen"): FROZEN.decode,
    }
    rng = random.Random(7)
    kinds: list[Callable[[bytes], bytes]] = [
        lambda c: c[: rng.randrange(len(c))],
        lambda c: flip(c, rng.randrange(len(c) * 8)),
        lambda c: put(c, rng.randrange(len(c)), rng.randbytes(rng.randint(1, 40))),
        lambda c: c + rng.randbytes(rng.randint(1, 40)),
        lambda c: cut(c, rng.randrange(len(c)), rng.randint(1, 9)),
        lambda c: c[: len(c) // 2] + rng.randbytes(1) + c[len(c) // 2 :],
        lambda c: rng.randbytes(rng.randint(0, 300)),
        lambda c: rng.choice([8, 100, 2**20, 2**63, 2**64 - 1]).to_bytes(8, "little") + c[8:],
        lambda c: put(c, rng.randrange(len(c)), bytes([rng.choice(b'{}[]",:0129')])),
    ]
    reasons = set()
    for number in range(3_000):
        content, decode = rng.choice(list(whole.items()))
        damaged = kinds[number % len(kinds)](content)
        if damaged in whole:
            continue
        with pytest.raises(InvalidFileError) as caught:
            decode(damaged)
        reasons.add(str(caught.value).split(" (")[0])
    assert len(reasons) >= 4, reasons


def learned_content(kind: str) -> bytes:
    """A small table learned beforehand."""
    family: dict[str, Any] = {"family": FAMILY, "family_name": "Toy", "learned_from": "a test"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kind
        if kind == "grams":
            counter = GramCounter(2)
            counter.add([], [1, 2, 3, 1, 2, 4])
            save_grams(counter.table(Pruning(highest_order=2)), path, **family)
        else:
            save_frozen(FrozenTable({(1,): ((2, 3), (4, 5)), (7,): ((8, 9),)}), path, **family)
        return path.read_bytes()


def flip(content: bytes, bit: int) -> bytes:
    return put(content, bit // 8, bytes([content[bit // 8] ^ 1 << bit % 8]))


def cut(content: bytes, at: int, count: int) -> bytes:
    return content[:at] + content[at + count :]


def put(content: bytes, at: int, piece: bytes) -> bytes:
    return (content[:at] + piece + content[at + len(piece) :])[: len(content)]


def test_every_single_bit_counts() -> None:
    content = small()
    for bit in range(len(content) * 8):
        with pytest.raises(InvalidFileError):
            decode_table(flip(content, bit))


# ---- hostile: the checksum is right, the content is not


def hostile(header: dict[str, Any] | None = None, **arrays: Any) -> bytes:
    table = NgramTable(16, SLOTS)
    fill(table, 5)
    good = saved(table)
    facts = msgspec.to_builtins(good.header)
    for key, value in (header or {}).items():
        place = facts["figures"] if key in facts["figures"] else facts
        place[key] = value
    entries = good.entries
    parts = {"slots": entries.slots, "tokens": entries.tokens, "ages": entries.ages, **arrays}
    made = msgspec.defstruct("Header", [(key, Any) for key in facts])(**facts)
    return encode(made, {name: part for name, part in parts.items() if part is not None})


def u32(*values: int) -> Any:
    return np.array(values, np.uint32)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (hostile({"format": "other"}), "not a Draftlight file"),
        (hostile({"version": 2}), "format version 2; this Draftlight reads version 1"),
        (hostile({"version": 0}), "format version 0"),
        (hostile({"family": "../../etc"}), "invalid header"),
        (hostile({"family": "AB" * 32}), "invalid header"),
        (hostile({"n": -1}), "invalid header"),
        (hostile({"n": 0}), "expected arrays"),
        (hostile({"n": 0}, tags=u32(1, 2)), "wrong size"),
        (hostile({"n": 0}, tags=u32(*range(5)), ages=np.zeros(5, np.uint8)), "never occurred"),
        (hostile({"n": 0}, tags=u32(*range(5)), tokens=u32(1, 2, 3, 4, VOCABULARY)), "outside the model's"),
        (hostile(tags=u32(*range(5))), "expected arrays"),
        (hostile({"n": 10**30}), "invalid header"),
        (hostile({"slots": 2**40}), "impossible size"),
        (hostile({"slots": 5000}), "impossible size"),
        (hostile({"used": 2**61}), "impossible size"),
        (hostile({"used": -1}), "invalid header"),
        (hostile({"used": 4}), "wrong size"),
        (hostile({"inserts": -5}), "invalid header"),
        (hostile({"hits": 2**63}), "invalid header"),
        (hostile({"created_s": "now"}), "invalid header"),
        (hostile({"multiplier": 3}), "another hash"),
        (hostile(tokens=u32(1, 2, 3, 4, VOCABULARY)), "outside the model's vocabulary of 1,000"),
        (hostile(tokens=u32(1, 2, 3, 4, 2**32 - 1)), "outside the model's vocabulary"),
        (hostile(slots=u32(1, 2, 3, 4, SLOTS)), "out of order or outside"),
        (hostile(slots=u32(1, 2, 3, 3, 4)), "out of order or outside"),
        (hostile(slots=u32(5, 4, 3, 2, 1)), "out of order or outside"),
        (hostile(tokens=u32(1, 2)), "wrong size"),
        (hostile(tokens=np.zeros(5, np.int64)), "wrong size or type"),
        (hostile(tokens=np.zeros((5, 1), np.uint32)), "wrong size or type"),
        (hostile(ages=None), "expected arrays"),
        (hostile(more=u32(1)), "expected arrays"),
    ],
)
def test_hostile_files_are_refused_with_a_reason(content: bytes, why: str) -> None:
    with pytest.raises(InvalidFileError, match=why):
        decode_table(content, vocabulary=VOCABULARY)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (6).to_bytes(8, "little") + b'"\xff\xfe"',
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
        save({"slots": np.zeros(3, np.uint32)}),
        save({"slots": np.zeros(3, np.uint32)}, metadata={"draftlight": "{}", "sha256": "0" * 64}),
        save({"slots": np.zeros(3, np.uint32)}, metadata={"draftlight": "[" * 100_000}),
    ],
)
def test_foreign_files_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidFileError, match=r"damaged|not a Draftlight file"):
        decode_table(content)


def test_a_file_says_nothing_twice() -> None:
    """A second checksum inside the header's own text does not move the first."""
    table = NgramTable(16, SLOTS)
    fill(table, 3)
    name = f'"sha256":"{"0" * 64}"'
    assert decode_table(encode_table(saved(table, family_name=name))).header.family_name == name
