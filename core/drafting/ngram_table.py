"""NgramTable: hash of the last n tokens → next token. The memory that requests share.

h(t₁…tₙ) = Σ tᵢ · Mⁿ⁻ⁱ mod 2⁶⁴ with the ngram-mod article's multiplier M, which rolls: a window's
hash follows from its predecessor's in O(1). How h becomes a slot the seed leaves open. Its low bits
depend on the ids' low bits alone (the lowest is the parity of their sum) and its top bits hardly
on the last token, so h is multiplied, folded and multiplied again, and the top bits of that are
the slot. Without the fold, windows that differ in the last token only filled a table by 45%
where a random function fills 63%.

Invariants: a slot holds the token of the latest insert that fell into it and when that was, no
tags, no chains: a collision overwrites silently and a wrong guess is the verifier's to refuse.
A table never fills up: once `decay_at` of it is used, the oldest quarter of its entries leaves
(an entry is as old as its last insert, and what is said again is inserted again). Time is counted
in inserts, in epochs of 1/64 of the slots. Only `reset` erases everything. Knows no request,
prompt or file. Worker's main thread only.

TableWriter: writes what one request says into the `NgramTable` that all requests share (the ngram-mod
article).

Owns the request's window of n tokens, its rolling hash, and transitions not yet written. As in
the seed the prompt is written at once; while decoding, transitions wait until
i_last + 32 < cur_len (i_last: first window not yet written), then all go in together, so an
answer is not drafted from its own last words.

Deviation: the gate is tested for every token, not once a step: what the table learns then depends
on the tokens alone, not on how steps cut them up. The hash rolls, so this costs O(1) a token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.events import TableFigures
from core.settings.drafting import check_slots

MULTIPLIER = 6364136223846793005
_MASK = (1 << 64) - 1
# A cell is epoch << 24 | id + 1, so that 0 means empty. Ids outside are never stored: the largest
# vocabularies have under 2^18.
_EPOCH_SHIFT = 24
_TOKEN = (1 << _EPOCH_SHIFT) - 1
_MARK = 0xFF << _EPOCH_SHIFT
ID_END = _TOKEN
_EPOCHS = 1 << 8
# So a quarter of a half full table is at least eight epochs: fine enough to leave about a quarter.
_EPOCHS_A_TABLE = 64
# What the visual design's tables do: “when half full, drop the oldest quarter”.
_LEAVING_SHARE = 0.25


class Entries(Struct, frozen=True):
    """The used slots' numbers, ascending, their tokens, and how many epochs ago each was written.

    All [used].
    """

    slots: NDArray[np.uint32]
    tokens: NDArray[np.uint32]
    ages: NDArray[np.uint8]


NO_ENTRIES = Entries(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint8))


class NgramTable:
    """`slots` is a power of two from 2^12 to 2^22 (else `SettingError`). Takes 4 bytes a slot.

    The memory is asked for zeroed at the first insert, so the system hands out only pages
    that are written: a nearly empty table of 4 Mi slots costs far less than its 16 MiB.
    """

    def __init__(self, n: int, slots: int) -> None:
        check_slots(slots)
        self.n = n
        self.slots = slots
        # The share of used slots at which old entries make room; above 1 never.
        self.decay_at = 0.5
        self._shift = 64 - (slots.bit_length() - 1)
        self._leaving_factor = pow(MULTIPLIER, n, 1 << 64)
        # Inserts until the epoch is over.
        self._left: int = 0
        self.reset()

    # ---- hashing

    def roll(self, window_hash: int, leaving: int, entering: int) -> int:
        """The hash after `entering` joined at the right and `leaving` (0 for none) fell out at the left."""
        return (window_hash * MULTIPLIER + entering - leaving * self._leaving_factor) & _MASK

    def slot(self, window_hash: int) -> int:
        """Where the window with that hash is kept."""
        mixed = window_hash * MULTIPLIER & _MASK
        return ((mixed ^ mixed >> 32) * MULTIPLIER & _MASK) >> self._shift

    # ---- memory

    def insert_all(self, pairs: Iterable[tuple[int, int]]) -> None:
        """For each (window hash, token), in order: it followed that window; replaces what shares its slot."""
        cells, slot_of = self._allocated(), self.slot
        mark, left = self._epoch << _EPOCH_SHIFT, self._left
        used = inserts = overwrites = 0
        for window_hash, token in pairs:
            if not 0 <= token < ID_END:
                continue
            slot = slot_of(window_hash)
            before = cells[slot] & _TOKEN
            inserts += 1
            if before == 0:
                used += 1
            elif before != token + 1:
                overwrites += 1
            cells[slot] = mark | (token + 1)
            left -= 1
            if not left:
                self._used += used
                self._fills += used
                used = 0
                self._turn_epoch()
                mark, left = self._epoch << _EPOCH_SHIFT, self._left
        self._left = left
        self._used += used
        self._fills += used
        self._inserts += inserts
        self._overwrites += overwrites

    def get(self, window_hash: int) -> int | None:
        """The token guessed to follow that window, or None. Counted in `figures`."""
        self._lookups += 1
        token = self.peek(window_hash)
        self._hits += token is not None
        return token

    def peek(self, window_hash: int) -> int | None:
        """Like `get`, and not counted."""
        if self._cells is None:
            return None
        cell = self._cells[self.slot(window_hash)] & _TOKEN
        return cell - 1 if cell else None

    def record(self, tested: int, accepted: int) -> None:
        """Of a draft made from this table, so many tokens were tested and accepted."""
        self._tested += tested
        self._accepted += accepted

    def reset(self) -> None:
        """Forget everything; the memory is given back."""
        self._cells: memoryview[int] | None = None
        self._used = self._inserts = self._overwrites = self._lookups = self._hits = 0
        self._tested = self._accepted = self._fills = 0
        self._epoch = 0
        self._left = self._epoch_inserts

    def copy(self) -> NgramTable:
        """A table with the same content and a life of its own."""
        copy = NgramTable(self.n, self.slots)
        copy.__dict__.update(self.__dict__)
        if self._cells is not None:
            copy._cells = np.array(self._cells).data
        return copy

    # ---- looking in

    @property
    def used(self) -> int:
        """Slots that hold a token."""
        return self._used

    @property
    def changes(self) -> int:
        """How many times an entry was written anew or changed. Only differences mean something."""
        return self._fills + self._overwrites

    def figures(self) -> TableFigures:
        """The counters since the table was made or reset; `restore` goes on from what it is given.

        So `inserts` − `overwrites` − those that filled an empty slot confirmed what was there.
        """
        return TableFigures(
            self._used,
            self.slots,
            self._inserts,
            self._overwrites,
            self._lookups,
            self._hits,
            self._tested,
            self._accepted,
        )

    def entries(self) -> Entries:
        """Copies of the content."""
        if self._cells is None:
            return NO_ENTRIES
        cells = np.frombuffer(self._cells, np.uint32)
        slots = np.flatnonzero(cells)
        held = cells[slots]
        ages = np.uint32(self._epoch) - (held >> _EPOCH_SHIFT)
        tokens = (held & np.uint32(_TOKEN)) - np.uint32(1)
        return Entries(slots.astype(np.uint32), tokens.astype(np.uint32), ages.astype(np.uint8))

    def restore(self, entries: Entries, figures: TableFigures | None = None) -> None:
        """Replace the content by what `entries` gave for a table of the same n and size.

        Counters go on from `figures`, or start again. Raises ValueError, and changes nothing, if
        the arrays are not that.
        """
        slots, tokens, ages = entries.slots, entries.tokens, entries.ages
        if slots.ndim != 1 or slots.shape != tokens.shape or slots.shape != ages.shape:
            raise ValueError(f"{slots.shape} slots and {tokens.shape} tokens do not make a table")
        if slots.size and (int(slots.max()) >= self.slots or int(tokens.max()) >= ID_END):
            raise ValueError(f"slot or token out of range for a table of {self.slots} slots")
        if (slots[1:] <= slots[:-1]).any():
            raise ValueError("a slot of the table occurs twice or out of order")
        self.reset()
        if figures is not None:
            self._inserts, self._overwrites = figures.inserts, figures.overwrites
            self._lookups, self._hits = figures.lookups, figures.hits
            self._tested, self._accepted = figures.tested, figures.accepted
        if slots.size:
            # Room for the ages below, and for as many epochs above.
            self._epoch = int(ages.max())
            marks = (np.uint32(self._epoch) - ages.astype(np.uint32)) << _EPOCH_SHIFT
            np.frombuffer(self._allocated(), np.uint32)[slots] = marks | (tokens + np.uint32(1))
            self._used = slots.size

    # ---- age

    @property
    def _epoch_inserts(self) -> int:
        return self.slots // _EPOCHS_A_TABLE

    def _turn_epoch(self) -> None:
        """An epoch is over: old entries leave if it is time, and all grow one older."""
        self._left = self._epoch_inserts
        if self._used > self.decay_at * self.slots:
            self._decay()
        self._epoch += 1
        if self._epoch == _EPOCHS:
            self._halve_ages()

    def _decay(self) -> None:
        """Empty a quarter of the used slots: the oldest epochs', and of the last of these just as many."""
        cells = np.frombuffer(self._allocated(), np.uint32)
        slots = np.flatnonzero(cells)
        epochs = cells[slots] >> _EPOCH_SHIFT
        leaving = int(len(slots) * _LEAVING_SHARE)
        so_far = np.cumsum(np.bincount(epochs, minlength=_EPOCHS))
        last = int(np.searchsorted(so_far, leaving))
        older, of_last = slots[epochs < last], slots[epochs == last]
        cells[older] = 0
        # Slots are hashes: the first of them are as good a choice as any.
        cells[of_last[: leaving - len(older)]] = 0
        self._used -= leaving

    def _halve_ages(self) -> None:
        """Make room for new epochs: the old ones stay in their order, two become one."""
        cells = np.frombuffer(self._allocated(), np.uint32)
        cells[:] = (cells >> np.uint32(1)) & np.uint32(_MARK) | cells & np.uint32(_TOKEN)
        self._epoch = _EPOCHS // 2

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

    def forget(self, family: str) -> None:
        """Drop every table of `family`."""
        self._tables = {key: table for key, table in self._tables.items() if key[0] != family}

    def private(self) -> NgramTables:
        """The same knowledge for a request that must leave no trace: its tables are copies."""
        return _PrivateTables(self)


class _PrivateTables(NgramTables):
    """Copies a table when it is first asked for; what is learned goes with this object."""

    def __init__(self, shared: NgramTables) -> None:
        super().__init__()
        self._shared = shared

    def table(self, family: str, n: int, slots: int) -> NgramTable:
        key = (family, n, slots)
        if key not in self._tables:
            known = self._shared._tables.get(key)
            self._tables[key] = known.copy() if known is not None else NgramTable(n, slots)
        return self._tables[key]


# The seed's chunked insert gate.
INSERT_GATE_TOKENS = 32


class TableWriter:
    """Of one request. `window` are the newest tokens, at most n, and `hash` is theirs."""

    def __init__(self, table: NgramTable) -> None:
        self.table = table
        self.window: deque[int] = deque(maxlen=table.n)
        self.hash: int = 0
        self._waiting: list[tuple[int, int]] = []

    @property
    def full(self) -> bool:
        """Whether there are n tokens to ask with."""
        return len(self.window) == self.table.n

    def read(self, prompt: Sequence[int]) -> None:
        """Write a prompt at once."""
        self.hear(prompt)
        self._write()

    def hear(self, tokens: Sequence[int]) -> None:
        """The text goes on with `tokens`."""
        table, window, waiting = self.table, self.window, self._waiting
        n, value = table.n, self.hash
        for token in tokens:
            if len(window) == n:
                waiting.append((value, token))
                value = table.roll(value, window[0], token)
                # cur_len − i_last is the window plus what waits.
                if n + len(waiting) > INSERT_GATE_TOKENS:
                    self._write()
            else:
                value = table.roll(value, 0, token)
            window.append(token)
        self.hash = value

    def _write(self) -> None:
        self.table.insert_all(self._waiting)
        self._waiting.clear()
