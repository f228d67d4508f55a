"""ngram-mod: drafts by chained look-ups in the family's shared `NgramTable` (seed 001).

Owns one request's state: the last n tokens, their rolling hash, transitions not yet written,
and how well its drafts did. The table is the memory; this is the strategy.

As in the seed: the prompt is written at once; while decoding, transitions wait until
i_last + 32 < cur_len (i_last: first window not yet written), then all go in together; a look-up
feeds its own guess back into the window, up to k times.

Deviations:
- The gate is tested for every token, not once a step: what the table learns then depends on
  the tokens alone, not on how steps cut them up. The hash rolls, so this costs O(1) a token.
- Low acceptance (below a half, three drafts in a row) wipes the table in the seed. Others share
  the table, so here the *request* pauses, 8 tokens at first and up to 32 while its drafts stay
  poor, and goes on teaching. Replaying recorded answers chose so short a pause: half-wrong drafts
  still pay mostly, pauses of 32 tokens lost 4 % of the throughput and these lose 1 %.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from core.drafting.draft import EMPTY, Draft
from core.drafting.drafter import RejectedRow
from core.drafting.ngram_table import NgramTable
from core.events import Occupancy, TableFigures
from core.settings.drafting import NgramMod

# The seed's chunked insert gate.
INSERT_GATE_TOKENS = 32
_MOST_DOUBLINGS = 2


class NgramModDrafter:
    """One request after the other on a shared `table`, whose n is the window's length."""

    def __init__(self, settings: NgramMod, table: NgramTable) -> None:
        self._settings = settings
        self._table = table
        self._window: deque[int] = deque(maxlen=table.n)
        self._waiting: list[tuple[int, int]] = []
        self._hash: int = 0
        self._seen: int = 0
        self._poor: int = 0
        self._doublings: int = 0
        self._resume_at: int = 0

    def begin(self, prompt: Sequence[int]) -> None:
        self._reset()
        self.observe(prompt)
        self._write()

    def observe(self, tokens: Sequence[int]) -> None:
        table, window, waiting = self._table, self._window, self._waiting
        n, value = table.n, self._hash
        self._seen += len(tokens)
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
        self._hash = value

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Unused: the table holds only what was said."""

    def draft(self, budget: int) -> Draft:
        table, value = self._table, self._hash
        if self.paused or len(self._window) < table.n:
            return EMPTY
        tail = list(self._window)
        for index in range(min(self._settings.k, budget)):
            token = table.get(value)
            if token is None:
                break
            value = table.roll(value, tail[index], token)
            tail.append(token)
        return Draft.chain(tail[table.n :])

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Counts poor drafts in a row; enough of them pause this request, never the table."""
        if not draft.tokens:
            return
        self._table.record(min(accepted + 1, len(draft)), accepted)
        if accepted >= self._settings.low_acceptance * len(draft):
            self._poor = self._doublings = 0
            return
        self._poor += 1
        if self._poor >= self._settings.low_streak:
            self._resume_at = self._seen + (self._settings.pause_tokens << self._doublings)
            self._doublings = min(self._doublings + 1, _MOST_DOUBLINGS)
            self._poor = 0

    def figures(self) -> TableFigures:
        """The table's counters."""
        return self._table.figures()

    def occupancy(self) -> Occupancy:
        return Occupancy(self._table.used, self._table.slots)

    @property
    def paused(self) -> bool:
        """Whether poor drafts have silenced this request for now."""
        return self._seen < self._resume_at

    def _write(self) -> None:
        self._table.insert_all(self._waiting)
        self._waiting.clear()

    def _reset(self) -> None:
        self._window.clear()
        self._waiting.clear()
        self._hash = 0
        self._seen = 0
        self._poor = 0
        self._doublings = 0
        self._resume_at = 0
