"""Rows: what the list says of each table, in words and figures. Pure; no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.gauges.figures import DASH, count, percent, short_count
from app.panels.chats.chat_row import time_label
from app.session.worker.families import recognised
from app.windows.tables import strings
from core.events import LearnedTable, TableInfo

_FINGERPRINT_DIGITS = 8


@dataclass(frozen=True)
class TableRow:
    """`share` is None where a table has no bounds. `id` names the table while it exists."""

    id: str
    title: str
    subtitle: str
    loaded: bool
    entries: str
    of_entries: str
    share: float | None
    hits: str
    accepted: str
    size: str
    saved: str
    learned_from: str
    tip: str

    @property
    def spoken(self) -> str:
        """The row as assistive technology reads it."""
        full = strings.HALF_FULL if self.share is not None and self.share > 0.5 else ""
        parts = (
            f"{self.title}, {self.subtitle}",
            f"{self.entries}{self.of_entries}",
            full,
            f"{strings.HITS} {self.hits}" if self.hits else "",
            f"{strings.ACCEPTED} {self.accepted}" if self.accepted else "",
            f"{strings.ON_DISK_COLUMN} {self.size}",
            f"{strings.SAVED} {self.saved}",
            f"{strings.LEARNED_FROM} {self.learned_from}" if self.learned_from else "",
        )
        return ", ".join(part for part in parts if part)


def table_id(info: TableInfo) -> str:
    """Names a table that chats teach."""
    return f"{info.family}/{info.n}/{info.figures.slots}"


def learned_id(table: LearnedTable) -> str:
    """Names a table learned beforehand."""
    return f"learned/{'shipped' if table.shipped else 'built'}/{table.file}"


def rows_of(
    tables: Sequence[TableInfo], learned: Sequence[LearnedTable], now: datetime
) -> tuple[TableRow, ...]:
    """Tables that chats teach, as given, then those learned beforehand."""
    families = [info.family for info in tables]
    taught = tuple(_taught(info, families.count(info.family) > 1, now) for info in tables)
    return taught + tuple(_learned(table, now) for table in learned)


def size_text(size_bytes: int) -> str:
    """2.4 MB, 12 KB; a dash for nothing."""
    if not size_bytes:
        return DASH
    if size_bytes < 1_000_000:
        return f"{max(1, round(size_bytes / 1000)):,} KB"
    return f"{size_bytes / 1e6:,.1f} MB"


def ago(when_s: float, now: datetime) -> str:
    """`2 minutes ago`; from a day on, the date."""
    when = datetime.fromtimestamp(when_s)
    minutes = int((now - when).total_seconds() // 60)
    if minutes < 1:
        return strings.JUST_NOW
    if minutes < 60:
        return strings.minutes_ago(minutes)
    if minutes < 24 * 60:
        return strings.hours_ago(minutes // 60)
    return strings.on(f"{when.day} {when:%b}" + ("" if when.year == now.year else f" {when.year}"))


def state_line(info: TableInfo, now: datetime) -> str:
    """`Loaded, saved 2 minutes ago, 1,204 entries since`."""
    parts = [strings.LOADED if info.loaded else strings.ON_DISK]
    parts.append(strings.saved(ago(info.updated_s, now)) if info.updated_s else strings.NEVER_SAVED)
    if info.unsaved and info.updated_s:
        parts.append(strings.unsaved(info.unsaved))
    return ", ".join(parts)


def kind_of(table: LearnedTable) -> str:
    """Where a table learned beforehand comes from."""
    if table.shipped:
        return strings.SHIPPED
    return strings.REHEARSED if table.drafter == "auto" else strings.BUILT


def _taught(info: TableInfo, several: bool, now: datetime) -> TableRow:
    figures = info.figures
    share = figures.used / figures.slots if figures.slots else 0.0
    fingerprint = info.family[:_FINGERPRINT_DIGITS]
    subtitle = f"{strings.LOADED if info.loaded else strings.ON_DISK} · {fingerprint}"
    if several:
        subtitle += f" · n {info.n}"
    return TableRow(
        id=table_id(info),
        title=recognised(info.family_name),
        subtitle=subtitle,
        loaded=info.loaded,
        entries=count(figures.used),
        of_entries=strings.entries_of(figures.used, short_count(figures.slots), share),
        share=share,
        hits=count(figures.hits),
        accepted=percent(figures.accepted / figures.tested) if figures.tested else DASH,
        size=size_text(info.size_bytes),
        saved=time_label(datetime.fromtimestamp(info.updated_s), now)
        if info.updated_s
        else strings.NOT_SAVED,
        learned_from=", ".join(teacher.model for teacher in info.learned_from),
        tip=f"{info.family_name}\n{info.family}\n{strings.windows_of(info.n)}",
    )


def _learned(table: LearnedTable, now: datetime) -> TableRow:
    return TableRow(
        id=learned_id(table),
        title=recognised(table.family_name),
        subtitle=kind_of(table),
        loaded=False,
        entries=strings.contexts(table.entries),
        of_entries="",
        share=None,
        hits="",
        accepted="",
        size=size_text(table.size_bytes),
        saved=DASH if table.shipped else time_label(datetime.fromtimestamp(table.updated_s), now),
        learned_from=table.learned_from,
        tip=f"{table.file}\n{table.family_name}\n{table.family}",
    )
