"""ngram-mod: drafts by chained look-ups in the family's shared `NgramTable` (the ngram-mod article).

Owns how well one request's drafts did. The table is the memory, `TableWriter` writes it; this is the
strategy: a look-up feeds its own guess back into the window, up to k times.

Deviation: low acceptance (below a half, three drafts in a row) wipes the table in the seed. Others
share the table, so here `poor_drafts` chooses what the *request* does:

`pause`, the default: it pauses, 8 tokens at first and up to 32 while its drafts stay poor, and goes
on teaching. Replaying recorded answers chose so short a pause: half-wrong drafts still pay mostly,
pauses of 32 tokens lost 4% of the throughput and these lose 1%. And a draft of which nothing came
makes the table prove itself: this request drafts again once a guess that was made in silence came
true. A look-up costs nothing, a draft does, so a table that is always wrong, whoever filled it,
costs one draft and not one after each pause.

`reset`: the seed's, as far as nobody else loses by it. From then on this request asks an empty table
of its own, filled with what is written from there; the shared one is taught as ever and keeps
everything, and the next request starts with it. It neither pauses nor doubts, as in the seed.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.drafting.draft import EMPTY, Draft, Drafter, RejectedRow
from core.drafting.ngram_table import NgramTable, TableWriter
from core.events import Occupancy, TableFigures
from core.settings.drafting import NgramMod

_MOST_DOUBLINGS = 2


class NgramModDrafter(Drafter):
    """One request after the other on a shared `table`, whose n is the window's length."""

    def __init__(self, settings: NgramMod, table: NgramTable) -> None:
        self._settings = settings
        self._table = table
        self._scribe = TableWriter(table)
        # What is drafted from: the shared table, or an empty one of this request's own.
        self._reader = self._scribe
        self._seen: int = 0
        self._poor: int = 0
        self._doublings: int = 0
        self._resume_at: int = 0
        self._doubted: bool = False

    def begin(self, prompt: Sequence[int]) -> None:
        self._reader = self._scribe = TableWriter(self._table)
        self._scribe.read(prompt)
        self._seen = len(prompt)
        self._poor = self._doublings = self._resume_at = 0
        self._doubted = False

    def observe(self, tokens: Sequence[int]) -> None:
        self._seen += len(tokens)
        if self._reader is not self._scribe:
            self._reader.hear(tokens)
        for place, token in enumerate(tokens):
            if not self._doubted:
                self._scribe.hear(tokens[place:])
                return
            scribe = self._scribe
            self._doubted = not scribe.full or self._table.peek(scribe.hash) != token
            scribe.hear((token,))

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Unused: the table holds only what was said."""

    def draft(self, budget: int) -> Draft:
        reader = self._reader
        table, value = reader.table, reader.hash
        if self.paused or self._doubted or not reader.full:
            return EMPTY
        tail = list(reader.window)
        for index in range(min(self._settings.k, budget)):
            token = table.get(value)
            if token is None:
                break
            value = table.roll(value, tail[index], token)
            tail.append(token)
        return Draft.chain(tail[table.n :])

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Counts poor drafts in a row; enough of them pause this request or empty what it asks.

        One of which nothing came is doubted until a guess comes true.
        """
        if not draft.tokens:
            return
        settings = self._settings
        resets = settings.poor_drafts == "reset"
        self._doubted = accepted == 0 and not resets
        self._table.record(min(accepted + 1, len(draft)), accepted)
        if accepted >= settings.low_acceptance * len(draft):
            self._poor = self._doublings = 0
            return
        self._poor += 1
        if self._poor >= settings.low_streak:
            self._poor = 0
            if resets:
                self._start_afresh()
                return
            self._resume_at = self._seen + (settings.pause_tokens << self._doublings)
            self._doublings = min(self._doublings + 1, _MOST_DOUBLINGS)

    def figures(self) -> TableFigures:
        """The table's counters."""
        return self._table.figures()

    def occupancy(self) -> Occupancy:
        return Occupancy(self._table.used, self._table.slots)

    @property
    def paused(self) -> bool:
        """Whether poor drafts have silenced this request for now."""
        return self._seen < self._resume_at

    def _start_afresh(self) -> None:
        """Ask an empty table from here on, behind the same last tokens."""
        table = self._table
        self._reader = TableWriter(NgramTable(table.n, table.slots))
        self._reader.hear(self._scribe.window)
