"""`ngram-mod` and its table: hash of the last n tokens → next token, shared by requests (ngram-mod article).

h(t₁…tₙ) = Σ tᵢ · Mⁿ⁻ⁱ mod 2⁶⁴ with the article's multiplier M. The hash rolls: a window's hash follows from
its predecessor's in O(1). The article does not say how h becomes a slot. The low bits of h depend on the low
bits of the ids alone (the lowest is the parity of their sum), and its top bits hardly on the last token. So h
is multiplied, folded and multiplied again, and the top bits of the result are the slot. Without the fold,
windows that differ in the last token only filled a table by 45%, where a random function fills 63%.

Invariants: a slot holds the token of the latest insert into it and its epoch. There are no tags and no
chains: a collision overwrites silently, and the target rejects the wrong guess. A table never fills up: once
`decay_at` of it is used, the oldest quarter of its entries is removed (an entry's age starts again with each
insert). Time is counted in epochs of inserts, 1/64 of the slots each. Only `reset` erases everything.
Worker's main thread only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.draft import EMPTY, NO_FACTS, Draft, Drafter, Facts
from core.drafting.gate import Backoff
from core.events import Occupancy, TableFigures
from core.settings.drafting import NgramMod, check_slots

MULTIPLIER = 6364136223846793005
_MASK = (1 << 64) - 1
# A cell is epoch << 24 | id + 1, so 0 means empty. Greater ids are never stored: the largest vocabularies
# have fewer than 2^18.
_EPOCH_SHIFT = 24
_TOKEN = (1 << _EPOCH_SHIFT) - 1
_MARK = 0xFF << _EPOCH_SHIFT
ID_END = _TOKEN
_EPOCHS = 1 << 8
# A quarter of a half-full table spans at least eight epochs: fine enough to remove about a quarter.
_EPOCHS_A_TABLE = 64
# From the visual design: “when half full, drop the oldest quarter”.
_LEAVING_SHARE = 0.25


_NO_IDS = np.empty(0, np.uint32)


class Entries(Struct, frozen=True):
    """The used slots, ascending, their tokens, and their ages in epochs. All [used].

    `tags`: empty, except in tables of short n-grams.
    """

    slots: NDArray[np.uint32]
    tokens: NDArray[np.uint32]
    ages: NDArray[np.uint8]
    tags: NDArray[np.uint32] = _NO_IDS


NO_ENTRIES = Entries(_NO_IDS, _NO_IDS, np.empty(0, np.uint8))


def check_entries(entries: Entries, slots: int) -> None:
    """Raises ValueError unless these can be the entries of a table of `slots` slots."""
    held, tokens = entries.slots, entries.tokens
    if held.ndim != 1 or held.shape != tokens.shape or held.shape != entries.ages.shape:
        raise ValueError(f"{held.shape} slots and {tokens.shape} tokens do not make a table")
    if held.size and (int(held.max()) >= slots or int(tokens.max()) >= ID_END):
        raise ValueError(f"slot or token out of range for a table of {slots} slots")
    if (held[1:] <= held[:-1]).any():
        raise ValueError("a slot of the table occurs twice or out of order")


class NgramTable:
    """`slots` is a power of two from 2^12 to 2^22 (otherwise raises `SettingError`). Takes 4 bytes per slot.

    The memory is allocated zeroed at the first insert, so the system provides only pages that are written: a
    nearly empty table of 4 Mi slots costs far less than its 16 MiB.
    """

    def __init__(self, n: int, slots: int) -> None:
        check_slots(slots)
        self.n = n
        self.slots = slots
        # Share of used slots at which old entries are removed; never if above 1.
        self.decay_at = 0.5
        self._shift = 64 - (slots.bit_length() - 1)
        self._leaving_factor = pow(MULTIPLIER, n, 1 << 64)
        # Inserts left in this epoch.
        self._left: int = 0
        self.reset()

    # ---- hashing

    def roll(self, window_hash: int, leaving: int, entering: int) -> int:
        """The hash after `entering` is appended and `leaving` (0 for none) drops out of the window."""
        return (window_hash * MULTIPLIER + entering - leaving * self._leaving_factor) & _MASK

    def slot(self, window_hash: int) -> int:
        """The slot of the window with that hash."""
        mixed = window_hash * MULTIPLIER & _MASK
        return ((mixed ^ mixed >> 32) * MULTIPLIER & _MASK) >> self._shift

    # ---- memory

    def insert_all(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Inserts (window hash, next token) pairs in order; each replaces the entry in its slot."""
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
        """Like `get`, without counting."""
        if self._cells is None:
            return None
        cell = self._cells[self.slot(window_hash)] & _TOKEN
        return cell - 1 if cell else None

    def record(self, tested: int, accepted: int) -> None:
        """Counts `tested` and `accepted` tokens of a draft made from this table."""
        self._tested += tested
        self._accepted += accepted

    def reset(self) -> None:
        """Erases everything and frees the memory."""
        self._cells: memoryview[int] | None = None
        self._used = self._inserts = self._overwrites = self._lookups = self._hits = 0
        self._tested = self._accepted = self._fills = 0
        self._epoch = 0
        self._left = self._epoch_inserts

    def copy(self) -> NgramTable:
        """An independent table with the same content."""
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
        """Number of entries added or changed. Only differences are meaningful."""
        return self._fills + self._overwrites

    def figures(self) -> TableFigures:
        """Counters since the table was made or reset; `restore` continues from given ones.

        `inserts` − `overwrites` − newly filled slots is the number of inserts that confirmed an entry.
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
        """A copy of the content."""
        if self._cells is None:
            return NO_ENTRIES
        cells = np.frombuffer(self._cells, np.uint32)
        slots = np.flatnonzero(cells)
        held = cells[slots]
        ages = np.uint32(self._epoch) - (held >> _EPOCH_SHIFT)
        tokens = (held & np.uint32(_TOKEN)) - np.uint32(1)
        return Entries(slots.astype(np.uint32), tokens.astype(np.uint32), ages.astype(np.uint8))

    def restore(self, entries: Entries, figures: TableFigures | None = None) -> None:
        """Replaces the content by `entries` of a table with the same n and size.

        Counters continue from `figures`, or start at 0. Raises ValueError, and changes nothing, if the arrays
        are invalid.
        """
        check_entries(entries, self.slots)
        slots, tokens, ages = entries.slots, entries.tokens, entries.ages
        self.reset()
        if figures is not None:
            self._inserts, self._overwrites = figures.inserts, figures.overwrites
            self._lookups, self._hits = figures.lookups, figures.hits
            self._tested, self._accepted = figures.tested, figures.accepted
        if slots.size:
            # Leaves room for the ages below, and for as many epochs above.
            self._epoch = int(ages.max())
            marks = (np.uint32(self._epoch) - ages.astype(np.uint32)) << _EPOCH_SHIFT
            np.frombuffer(self._allocated(), np.uint32)[slots] = marks | (tokens + np.uint32(1))
            self._used = slots.size

    # ---- age

    @property
    def _epoch_inserts(self) -> int:
        return self.slots // _EPOCHS_A_TABLE

    def _turn_epoch(self) -> None:
        """Starts a new epoch; removes old entries if the table is full enough."""
        self._left = self._epoch_inserts
        if self._used > self.decay_at * self.slots:
            self._decay()
        self._epoch += 1
        if self._epoch == _EPOCHS:
            self._halve_ages()

    def _decay(self) -> None:
        """Empties a quarter of the used slots: the oldest epochs', and part of the next epoch's to reach the
        number.
        """
        cells = np.frombuffer(self._allocated(), np.uint32)
        slots = np.flatnonzero(cells)
        epochs = cells[slots] >> _EPOCH_SHIFT
        leaving = int(len(slots) * _LEAVING_SHARE)
        so_far = np.cumsum(np.bincount(epochs, minlength=_EPOCHS))
        last = int(np.searchsorted(so_far, leaving))
        older, of_last = slots[epochs < last], slots[epochs == last]
        cells[older] = 0
        # Slots are hashes, so the first ones are as good a choice as any.
        cells[of_last[: leaving - len(older)]] = 0
        self._used -= leaving

    def _halve_ages(self) -> None:
        """Makes room for new epochs: merges each two old ones, in order."""
        cells = np.frombuffer(self._allocated(), np.uint32)
        cells[:] = (cells >> np.uint32(1)) & np.uint32(_MARK) | cells & np.uint32(_TOKEN)
        self._epoch = _EPOCHS // 2

    def _allocated(self) -> memoryview[int]:
        if self._cells is None:
            self._cells = np.zeros(self.slots, np.uint32).data
        return self._cells


# The source's chunked insert gate.
INSERT_GATE_TOKENS = 32


class TableWriter:
    """Writes one request's tokens into a shared `NgramTable` (the ngram-mod article).

    `window` holds the newest tokens, at most n, and `hash` is their hash. As in the source, a prompt is
    written at once. While decoding, transitions wait until i_last + 32 < cur_len (i_last: first window not
    yet written) and are then written together, so an answer is not drafted from its own last words.

    Deviation: the gate is tested for every token instead of once per step, so the table's content depends on
    the tokens alone, not on the steps. The hash rolls, so this costs O(1) per token.
    """

    def __init__(self, table: NgramTable) -> None:
        self.table = table
        self.window: deque[int] = deque(maxlen=table.n)
        self.hash: int = 0
        self._waiting: list[tuple[int, int]] = []

    @property
    def full(self) -> bool:
        """Whether the window holds n tokens."""
        return len(self.window) == self.table.n

    def read(self, prompt: Sequence[int]) -> None:
        """Writes a prompt at once."""
        self.observe(prompt)
        self._write()

    def observe(self, tokens: Sequence[int]) -> None:
        """Appends `tokens` to the text."""
        table, window, waiting = self.table, self.window, self._waiting
        n, value = table.n, self.hash
        for token in tokens:
            if len(window) == n:
                waiting.append((value, token))
                value = table.roll(value, window[0], token)
                # cur_len − i_last is the window and the waiting transitions.
                if n + len(waiting) > INSERT_GATE_TOKENS:
                    self._write()
            else:
                value = table.roll(value, 0, token)
            window.append(token)
        self.hash = value

    def _write(self) -> None:
        self.table.insert_all(self._waiting)
        self._waiting.clear()


# ---- drafter
#
# `ngram-mod`: drafts by chained look-ups in the family's shared `NgramTable` (the ngram-mod article).
#
# Each look-up feeds its guess back into the window, up to k times. `TableWriter` writes the table; this
# module decides when to draft from it.
#
# Deviation: in the source, low acceptance (below a half, three drafts in a row) clears the table. Here
# other requests share it, so the request only stops drafting for 8 tokens, up to 32 while its drafts stay
# poor, and continues to write. Replays of recorded answers favoured short pauses: half-wrong drafts mostly
# still pay, and pauses of 32 tokens lost 4% of the throughput where these lose 1%. After a draft without
# any accepted token, the request drafts again only once an undrafted guess was right. Look-ups are free and
# drafts are not, so a table that is always wrong, whichever request filled it, costs one draft instead of
# one after each pause.


# The article's: a draft with a smaller accepted share is poor, and three in a row have a consequence.
_LOW_ACCEPTANCE = 0.5
_LOW_STREAK = 3
_PAUSE_TOKENS = 8
_MAX_DOUBLINGS = 2


class NgramModDrafter(Drafter):
    """Serves one request after the other from a shared `table`, whose n is the window length."""

    def __init__(self, settings: NgramMod, table: NgramTable) -> None:
        self._settings = settings
        self._table = table
        self.begin(())

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self._writer = TableWriter(self._table)
        self._writer.read(prompt)
        self._poor = 0  # consecutive poor drafts
        self._backoff = Backoff(_PAUSE_TOKENS, _MAX_DOUBLINGS)
        self._doubted = False

    def observe(self, tokens: Sequence[int]) -> None:
        self._backoff.passed(len(tokens))
        writer = self._writer
        for index_in_step, token in enumerate(tokens):
            if not self._doubted:
                writer.observe(tokens[index_in_step:])
                return
            self._doubted = not writer.full or self._table.peek(writer.hash) != token
            writer.observe((token,))

    def draft(self, budget: int) -> Draft:
        writer = self._writer
        table, value = writer.table, writer.hash
        if self.paused or self._doubted or not writer.full:
            return EMPTY
        tail = list(writer.window)
        for index in range(min(self._settings.k, budget)):
            token = table.get(value)
            if token is None:
                break
            value = table.roll(value, tail[index], token)
            tail.append(token)
        return Draft.chain(tail[table.n :])

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Counts consecutive poor drafts, which pause drafting.

        After a draft without any accepted token, drafting waits until a guess is right.
        """
        if not draft.tokens:
            return
        self._doubted = accepted == 0
        self._table.record(min(accepted + 1, len(draft)), accepted)
        if accepted >= _LOW_ACCEPTANCE * len(draft):
            self._poor = 0
            self._backoff.worked()
            return
        self._poor += 1
        if self._poor >= _LOW_STREAK:
            self._poor = 0
            self._backoff.failed()

    def figures(self) -> TableFigures:
        """The table's counters."""
        return self._table.figures()

    def occupancy(self) -> Occupancy:
        return Occupancy(self._table.used, self._table.slots)

    @property
    def paused(self) -> bool:
        """Whether poor drafts have paused drafting in this request."""
        return self._backoff.left_tokens > 0
