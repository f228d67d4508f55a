"""TableMetadata: what is known of one table in memory beside its content: teachers, days, what was saved.

Counters of a table only grow; here their growth is credited to the model that was loaded and to
the day. Knows no file.
"""

from __future__ import annotations

from core.drafting.tables.ngram_table import NgramTable
from core.events import TableDay, TableFigures, TableInfo, TableTeacher
from core.tables.table_file import DAYS_KEPT, TableHeader, make_header


class TableMetadata:
    """Of one `table`. `header` is that of the file it was read from, if it was."""

    def __init__(
        self, table: NgramTable, now_s: float, header: TableHeader | None = None, size_bytes: int = 0
    ) -> None:
        self.table = table
        self.created_s = header.created_s if header else now_s
        self.updated_s = header.updated_s if header else 0.0
        self.size_bytes = size_bytes
        self._teachers = {t.model: t.entries for t in header.learned_from} if header else {}
        self._days: list[TableDay] = list(header.days) if header else []
        # Nothing is credited yet of a table that was not read: a drafter made it during an answer.
        figures = table.figures() if header else TableFigures()
        self._credited = self._saved_changes = table.changes if header else 0
        self._tested, self._accepted = figures.tested, figures.accepted
        self._saved_activity = (figures.inserts, figures.lookups)

    def credit(self, model: str, day: str) -> None:
        """What was learned since the last call, `model` taught on `day` (like 2026-11-21)."""
        changes = self.table.changes - self._credited
        figures = self.table.figures()
        if changes:
            self._teachers[model] = self._teachers.get(model, 0) + changes
        tested, accepted = figures.tested - self._tested, figures.accepted - self._accepted
        if changes or tested:
            if self._days and self._days[-1].day == day:
                last = self._days.pop()
                tested, accepted = tested + last.tested, accepted + last.accepted
            self._days.append(TableDay(day, figures.used, tested, accepted))
            del self._days[:-DAYS_KEPT]
        self._credited, self._tested, self._accepted = self.table.changes, figures.tested, figures.accepted

    @property
    def is_saved(self) -> bool:
        """Whether nothing happened since the last save. A table that was never used needs none."""
        return self._activity() == self._saved_activity

    def mark(self) -> tuple[int, tuple[int, int]]:
        """What to give to `saved` once the content of now is on disk."""
        return self.table.changes, self._activity()

    def saved(self, mark: tuple[int, tuple[int, int]], size_bytes: int, now_s: float) -> None:
        """The content at `mark` is on disk."""
        self._saved_changes, self._saved_activity = mark
        self.size_bytes, self.updated_s = size_bytes, now_s

    def header(self, family: str, family_name: str, now_s: float) -> TableHeader:
        """The header for a file with the content of now."""
        return make_header(
            family,
            family_name,
            self.table.n,
            self.table.figures(),
            self.teachers,
            tuple(self._days),
            self.created_s,
            now_s,
        )

    def info(self, family: str, family_name: str, *, has_previous: bool, why_not_saved: str) -> TableInfo:
        """All of it, for people."""
        return TableInfo(
            family,
            family_name,
            self.table.n,
            self.table.figures(),
            self.teachers,
            tuple(self._days),
            self.created_s,
            self.updated_s,
            self.size_bytes,
            has_previous,
            True,
            self.table.changes - self._saved_changes,
            why_not_saved,
        )

    @property
    def teachers(self) -> tuple[TableTeacher, ...]:
        """Models by what they taught, most first."""
        most_first = sorted(self._teachers.items(), key=lambda pair: -pair[1])
        return tuple(TableTeacher(model, entries) for model, entries in most_first)

    def _activity(self) -> tuple[int, int]:
        figures = self.table.figures()
        return figures.inserts, figures.lookups


def saved_info(header: TableHeader, *, size_bytes: int, has_previous: bool) -> TableInfo:
    """A table that is on disk and not in memory."""
    return TableInfo(
        header.family,
        header.family_name,
        header.n,
        TableFigures(**_as_dict(header.figures)),
        tuple(TableTeacher(t.model, t.entries) for t in header.learned_from),
        tuple(TableDay(d.day, d.used, d.tested, d.accepted) for d in header.days),
        header.created_s,
        header.updated_s,
        size_bytes,
        has_previous,
    )


def _as_dict(figures: TableFigures) -> dict[str, int]:
    return {name: getattr(figures, name) for name in TableFigures.__struct_fields__}
