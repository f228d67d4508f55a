"""Totals of a sparse prefill: the one place that adds up chosen, read and skipped tokens. Pure.

The words are those of docs/glossary.md. A map covers the new tokens of a prompt; cached ones are not on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from core.events import Passage, ReadingMap


class ReadingTotals(Struct, frozen=True):
    """Tokens of passages: `chosen` by score, `always` read, read `earlier`, `skipped`; together `all`."""

    chosen: int = 0
    always: int = 0
    earlier: int = 0
    skipped: int = 0

    @property
    def all(self) -> int:
        return self.chosen + self.always + self.earlier + self.skipped

    @property
    def kept(self) -> int:
        """Chosen, or always read: what this prefill reads."""
        return self.chosen + self.always

    @property
    def chosen_percent(self) -> int:
        """The share of all that was chosen: what the setting Keep asks for."""
        return _percent(self.chosen, self.all)

    @property
    def known_percent(self) -> int:
        """The share of all that is read, now or earlier."""
        return _percent(self.kept + self.earlier, self.all)


def totals_of(reading: ReadingMap) -> ReadingTotals:
    """The totals of a prompt."""
    found = totals_of_passages(reading.passages)
    always = min(reading.always_tokens, found.chosen)
    return ReadingTotals(found.chosen - always, always, found.earlier, found.skipped)


def totals_of_passages(passages: Sequence[Passage]) -> ReadingTotals:
    """The totals of some passages, such as a document's; passages that are always read count as chosen."""
    chosen = earlier = skipped = 0
    for passage in passages:
        tokens = passage.end - passage.start
        if not passage.kept:
            skipped += tokens
        elif passage.earlier:
            earlier += tokens
        else:
            chosen += tokens
    return ReadingTotals(chosen, 0, earlier, skipped)


def _percent(tokens: int, of: int) -> int:
    return round(100 * tokens / max(1, of))
