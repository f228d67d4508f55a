"""NgramTables: the tables of all tokenizer families, shared by requests."""

from __future__ import annotations

from core.drafting.gram_counts import SLOTS, GramCounts
from core.drafting.ngram_mod import NgramTable

SharedTable = NgramTable | GramCounts


class NgramTables:
    """One table per (family, n, slots), made on first use; n 0 are the short n-grams.

    `family` is the tokenizer's fingerprint: ids have the same meaning inside a family only.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int, int], SharedTable] = {}

    def table(self, family: str, n: int, slots: int) -> NgramTable:
        """The family's table for windows of n tokens. Raises `SettingError` for an invalid size."""
        table = self.shared(family, n, slots)
        assert isinstance(table, NgramTable)
        return table

    def grams(self, family: str) -> GramCounts:
        """The family's short n-grams."""
        table = self.shared(family, GramCounts.n, SLOTS)
        assert isinstance(table, GramCounts)
        return table

    def shared(self, family: str, n: int, slots: int) -> SharedTable:
        """The family's table of that shape."""
        key = (family, n, slots)
        if key not in self._tables:
            self._tables[key] = NgramTable(n, slots) if n else GramCounts(slots)
        return self._tables[key]

    def for_family(self, family: str) -> tuple[SharedTable, ...]:
        """Every table of `family` in memory."""
        return tuple(table for (name, _, _), table in self._tables.items() if name == family)

    def forget(self, family: str) -> None:
        """Drops every table of `family`."""
        self._tables = {key: table for key, table in self._tables.items() if key[0] != family}

    def private_copies(self, family: str) -> NgramTables:
        """Tables for a request that must leave no trace: copies of the family's, with the same content."""
        copies = NgramTables()
        copies._tables = {key: table.copy() for key, table in self._tables.items() if key[0] == family}
        return copies
