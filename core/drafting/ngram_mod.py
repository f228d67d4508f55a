"""`ngram-mod`: drafts by chained look-ups in the family's shared `NgramTable` (the ngram-mod article).

Each look-up feeds its guess back into the window, up to k times. `TableWriter` writes the table; this module
decides when to draft from it.

Deviation: in the source, low acceptance (below a half, three drafts in a row) clears the table. Here other
requests share it, so the request only stops drafting for 8 tokens, up to 32 while its drafts stay poor, and
continues to write. Replays of recorded answers favoured short pauses: half-wrong drafts mostly still pay, and
pauses of 32 tokens lost 4% of the throughput where these lose 1%. After a draft without any accepted token,
the request drafts again only once an undrafted guess was right. Look-ups are free and drafts are not, so a
table that is always wrong, whichever request filled it, costs one draft instead of one after each pause.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.drafting.draft import EMPTY, Draft, Drafter, RejectedRow
from core.drafting.ngram_table import NgramTable, TableWriter
from core.events import Occupancy, TableFigures
from core.settings.drafting import NgramMod

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
        self._writer = TableWriter(table)
        self._seen: int = 0
        self._poor: int = 0
        self._doublings: int = 0
        self._resume_at: int = 0
        self._doubted: bool = False

    def begin(self, prompt: Sequence[int]) -> None:
        self._writer = TableWriter(self._table)
        self._writer.read(prompt)
        self._seen = len(prompt)
        self._poor = self._doublings = self._resume_at = 0
        self._doubted = False

    def observe(self, tokens: Sequence[int]) -> None:
        self._seen += len(tokens)

        for index_in_step, token in enumerate(tokens):
            if not self._doubted:
                self._writer.observe(tokens[index_in_step:])
                return
            scribe = self._writer
            self._doubted = not scribe.full or self._table.peek(scribe.hash) != token
            scribe.observe((token,))

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Does nothing: the table holds only emitted tokens."""

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
            self._poor = self._doublings = 0
            return
        self._poor += 1
        if self._poor >= _LOW_STREAK:
            self._poor = 0
            self._resume_at = self._seen + (_PAUSE_TOKENS << self._doublings)
            self._doublings = min(self._doublings + 1, _MAX_DOUBLINGS)

    def figures(self) -> TableFigures:
        """The table's counters."""
        return self._table.figures()

    def occupancy(self) -> Occupancy:
        return Occupancy(self._table.used, self._table.slots)

    @property
    def paused(self) -> bool:
        """Whether poor drafts have paused drafting in this request."""
        return self._seen < self._resume_at
