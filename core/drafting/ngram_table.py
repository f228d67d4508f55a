"""NgramTable: hash of the last n tokens → next token. The memory that requests share.

h(t₁…tₙ) = Σ tᵢ · Mⁿ⁻ⁱ mod 2⁶⁴ with the seed's multiplier M (seed 001), which rolls: a window's
hash follows from its predecessor's in O(1). How h becomes a slot the seed leaves open. Its low bits
depend on the ids' low bits alone (the lowest is the parity of their sum) and its top bits hardly
on the last token, so h is multiplied, folded and multiplied again, and the top bits of that are
the slot. Without the fold, windows that differ in the last token only filled a table by 45 %
where a random function fills 63 %.

Invariants: a slot holds the token of the latest insert that fell into it and nothing else, no
tags, no chains: a collision overwrites silently and a wrong guess is the verifier's to refuse.
`used` never falls but by `reset`, which erases every slot. Knows no request, prompt or file.
Worker's main thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.settings.drafting import check_slots

MULTIPLIER = 6364136223846793005
_MASK = (1 << 64) - 1
# Slots hold id + 1 in 32 bits, so that 0 means empty; ids outside are never stored.
_ID_END = (1 << 32) - 1


class NgramTableStats(Struct, frozen=True):
    """Counters since the table was made or reset. A lookup that finds a token is a hit.

    `inserts` counts all writes, `overwrites` those that replaced a different token; so
    `inserts` − `used` − `overwrites` confirmed what was there.
    """

    used: int
    slots: int
    inserts: int
    overwrites: int
    lookups: int
    hits: int


class NgramTable:
    """`slots` is a power of two from 2^12 to 2^22 (else `SettingError`). Takes 4 bytes a slot.

    The memory is asked for zeroed at the first insert, so the system hands out only pages
    that are written: a nearly empty table of 4 Mi slots costs far less than its 16 MiB.
    """

    def __init__(self, n: int, slots: int) -> None:
        check_slots(slots)
        self.n = n
        self.slots = slots
        self._shift = 64 - (slots.bit_length() - 1)
        self._leaving_factor = pow(MULTIPLIER, n, 1 << 64)
        self.reset()

    # ---- hashing

    def roll(self, window_hash: int, leaving: int, entering: int) -> int:
        """The hash after `entering` joined at the right and `leaving` (0 for none) fell out at the left."""
        return (window_hash * MULTIPLIER + entering - leaving * self._leaving_factor) & _MASK

    def window_hash(self, window: Sequence[int]) -> int:
        """The hash of exactly these tokens, from scratch."""
        value = 0
        for token in window:
            value = (value * MULTIPLIER + token) & _MASK
        return value

    def slot(self, window_hash: int) -> int:
        """Where the window with that hash is kept."""
        mixed = window_hash * MULTIPLIER & _MASK
        return ((mixed ^ mixed >> 32) * MULTIPLIER & _MASK) >> self._shift

    # ---- memory

    def insert(self, window_hash: int, token: int) -> None:
        """`token` followed that window; replaces whatever shares its slot."""
        self.insert_all(((window_hash, token),))

    def insert_all(self, pairs: Iterable[tuple[int, int]]) -> None:
        """`insert` for each (window hash, token), in order."""
        cells, slot_of = self._allocated(), self.slot
        used = inserts = overwrites = 0
        for window_hash, token in pairs:
            if not 0 <= token < _ID_END:
                continue
            slot = slot_of(window_hash)
            before = cells[slot]
            inserts += 1
            if before == 0:
                used += 1
            elif before == token + 1:
                continue
            else:
                overwrites += 1
            cells[slot] = token + 1
        self._used += used
        self._inserts += inserts
        self._overwrites += overwrites

    def get(self, window_hash: int) -> int | None:
        """The token guessed to follow that window, or None. Counted in `stats`."""
        self._lookups += 1
        if self._cells is None:
            return None
        cell = self._cells[self.slot(window_hash)]
        if cell == 0:
            return None
        self._hits += 1
        return cell - 1

    def reset(self) -> None:
        """Forget everything; the memory is given back."""
        self._cells: memoryview[int] | None = None
        self._used = self._inserts = self._overwrites = self._lookups = self._hits = 0

    # ---- looking in

    @property
    def used(self) -> int:
        """Slots that hold a token."""
        return self._used

    def stats(self) -> NgramTableStats:
        return NgramTableStats(
            self._used, self.slots, self._inserts, self._overwrites, self._lookups, self._hits
        )

    def entries(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Copies of the used slots' numbers, ascending, and of their tokens; both [used]."""
        if self._cells is None:
            return np.empty(0, np.uint32), np.empty(0, np.uint32)
        cells = np.frombuffer(self._cells, np.uint32)
        used = np.flatnonzero(cells)
        return used.astype(np.uint32), cells[used] - np.uint32(1)

    def restore(self, slots: NDArray[np.uint32], tokens: NDArray[np.uint32]) -> None:
        """Replace the content by what `entries` gave for a table of the same n and size.

        Counters start again. Raises ValueError, and changes nothing, if the arrays are not that.
        """
        if slots.ndim != 1 or slots.shape != tokens.shape:
            raise ValueError(f"{slots.shape} slots and {tokens.shape} tokens do not make a table")
        if slots.size and (int(slots.max()) >= self.slots or int(tokens.max()) >= _ID_END):
            raise ValueError(f"slot or token out of range for a table of {self.slots} slots")
        if len(np.unique(slots)) != slots.size:
            raise ValueError("a slot occurs twice")
        self.reset()
        if slots.size:
            np.frombuffer(self._allocated(), np.uint32)[slots] = tokens + np.uint32(1)
            self._used = slots.size

    def _allocated(self) -> memoryview[int]:
        if self._cells is None:
            self._cells = np.zeros(self.slots, np.uint32).data
        return self._cells


class NgramTables:
    """The shared tables: one for each (family, n, slots), made when first asked for.

    `family` is the tokenizer's fingerprint: ids mean the same tokens inside a family only.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int, int], NgramTable] = {}

    def table(self, family: str, n: int, slots: int) -> NgramTable:
        """The family's table of that shape. Raises `SettingError` for an impossible size."""
        key = (family, n, slots)
        if key not in self._tables:
            self._tables[key] = NgramTable(n, slots)
        return self._tables[key]

    def of_family(self, family: str) -> tuple[NgramTable, ...]:
        """Every table made for `family` so far."""
        return tuple(table for (name, _, _), table in self._tables.items() if name == family)
