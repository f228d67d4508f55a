"""The list of tables: its rows and columns, and which commands the selected table allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPixmap

from app.controls.record_table import Column, draw_meter, swatch
from app.features.tables import strings
from app.features.tables.state import Tables
from app.gauges.figures import DASH, count, percent, short_count, spoken_text
from app.panels.chat_row import time_label
from app.session.status import recognised
from core.events import LearnedTable, TableInfo

_FINGERPRINT_DIGITS = 8


@dataclass(frozen=True)
class TableRow:
    """`share` is None for a table without a limit. `id` identifies the table while it exists."""

    id: str
    title: str
    subtitle: str
    loaded: bool
    entries: str
    share: float | None
    hits: str
    accepted: str
    size: str
    saved: str
    learned_from: str
    tip: str

    @property
    def spoken(self) -> str:
        full = strings.HALF_FULL if self.share is not None and self.share > 0.5 else ""
        hits, accepted = (strings.HITS, self.hits), (strings.ACCEPTED, self.accepted)
        size, saved = (strings.ON_DISK_COLUMN, self.size), (strings.SAVED, self.saved)
        learned_from = (strings.LEARNED_FROM, self.learned_from)
        return spoken_text(
            self.title, self.subtitle, self.entries, full, hits, accepted, size, saved, learned_from
        )


def table_id(info: TableInfo) -> str:
    return f"{info.family}/{info.n}/{info.figures.slots}"


def learned_id(table: LearnedTable) -> str:
    return f"learned/{'shipped' if table.shipped else 'built'}/{table.file}"


def rows_of(
    tables: Sequence[TableInfo], learned: Sequence[LearnedTable], now: datetime
) -> tuple[TableRow, ...]:
    """Returns the rows of tables that chats teach, then of those learned beforehand."""
    families = [info.family for info in tables]
    taught = tuple(_taught(info, families.count(info.family) > 1, now) for info in tables)
    return taught + tuple(_learned(table, now) for table in learned)


def size_text(size_bytes: int) -> str:
    """Returns `2.4 MB` or `12 KB`; a dash for 0."""
    if not size_bytes:
        return DASH
    if size_bytes < 1_000_000:
        return f"{max(1, round(size_bytes / 1000)):,} KB"
    return f"{size_bytes / 1e6:,.1f} MB"


def ago(when_s: float, now: datetime) -> str:
    """Returns `2 minutes ago`; after a day the date."""
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
    """Returns `Loaded, saved 2 minutes ago, 1,204 entries since`."""
    parts = [strings.LOADED if info.loaded else strings.ON_DISK]
    parts.append(strings.saved(ago(info.updated_s, now)) if info.updated_s else strings.NEVER_SAVED)
    if info.unsaved and info.updated_s:
        parts.append(strings.unsaved(info.unsaved))
    return ", ".join(parts)


def kind_of(table: LearnedTable) -> str:
    """Returns the origin of a table learned beforehand."""
    if table.shipped:
        return strings.SHIPPED
    return strings.BUILT


def _taught(info: TableInfo, several: bool, now: datetime) -> TableRow:
    figures = info.figures
    share = figures.used / figures.slots if figures.slots else 0.0
    fingerprint = info.family[:_FINGERPRINT_DIGITS]
    subtitle = f"{strings.LOADED if info.loaded else strings.ON_DISK} · {fingerprint}"
    if several:  # the kind first, since the end may be cut
        subtitle = f"{strings.windows_of(info.n)} · {subtitle.lower()}"
    return TableRow(
        id=table_id(info),
        title=recognised(info.family_name),
        subtitle=subtitle,
        loaded=info.loaded,
        entries=count(figures.used) + strings.entries_of(figures.used, short_count(figures.slots), share),
        share=share,
        hits=count(figures.hits),
        accepted=percent(figures.accepted / figures.tested) if figures.tested else DASH,
        size=size_text(info.size_bytes),
        saved=time_label(datetime.fromtimestamp(info.updated_s), now)
        if info.updated_s
        else strings.NOT_SAVED,
        learned_from=strings.CHATS,
        tip=f"{info.family_name}\n{info.family}\n{strings.windows_of(info.n)}\n{state_line(info, now)}",
    )


def _learned(table: LearnedTable, now: datetime) -> TableRow:
    return TableRow(
        id=learned_id(table),
        title=recognised(table.family_name),
        subtitle=kind_of(table),
        loaded=False,
        entries=strings.contexts(table.entries),
        share=None,
        hits="",
        accepted="",
        size=size_text(table.size_bytes),
        saved=DASH if table.shipped else time_label(datetime.fromtimestamp(table.updated_s), now),
        learned_from=table.learned_from,
        tip=f"{table.file}\n{table.family_name}\n{table.family}",
    )


# Colours of the first tables; green, amber and vermilion have other meanings.
_SWATCHES = ("series_blue", "series_purple", "series_grey", "series_sky", "text", "normal_mark")


def _swatch(row: TableRow, place: int, ratio: float) -> QPixmap:
    """The colour of a table; only a frame for one that chats do not fill."""
    ink = _SWATCHES[place % len(_SWATCHES)]
    return swatch(9, 2, ratio, "" if row.share is None else ink, ink if row.share is None else "")


def _paint_share(painter: QPainter, box: QRectF, row: TableRow) -> None:
    """The used entries, with a mark at the half."""
    draw_meter(painter, box, row.share or 0.0, mark=0.5)


COLUMNS = (
    Column("title", strings.FAMILY, 176, icon=_swatch, below="subtitle"),
    Column("entries", strings.ENTRIES_USED, 262, below="share", paint_below=_paint_share),
    Column("hits", strings.HITS, 92, right=True),
    Column("accepted", strings.ACCEPTED, 92, right=True),
    Column("size", strings.ON_DISK_COLUMN, 92, right=True),
    Column("saved", strings.SAVED, 112, ink="text2"),
    Column("learned_from", strings.LEARNED_FROM, 306, grows=True, ink="text2"),
)


@dataclass(frozen=True)
class Abilities:
    """For each command the reason why it is disabled; empty if it is enabled."""

    save: str
    load: str
    import_: str
    export: str
    reset: str


def abilities_of(tables: Tables, chosen: TableInfo | LearnedTable | None, *, alive: bool) -> Abilities:
    """Returns the commands for the selected table. `alive`: the worker runs."""
    if not alive or tables.doing:
        why_not = strings.WORKER_GONE if not alive else strings.ONE_AT_A_TIME
        return Abilities(*(why_not,) * 5)
    taught = chosen if isinstance(chosen, TableInfo) else None
    nothing = "" if taught else strings.NOTHING_CHOSEN if chosen is None else strings.READ_ONLY_TABLE
    read_only = _read_only(taught) if taught else ""
    return Abilities(
        save=_why_not_save(tables),
        load=nothing or _why_not_load(tables, taught),
        import_="",
        export=nothing,
        reset=nothing or read_only,
    )


def _why_not_save(tables: Tables) -> str:
    if tables.model is None:
        return strings.NO_MODEL
    own = tables.of_family(tables.model.family)
    return next((_read_only(info) for info in own if info.why_not_saved), "")


def _why_not_load(tables: Tables, taught: TableInfo | None) -> str:
    if tables.model is None:
        return strings.NO_MODEL
    if taught is None or taught.family != tables.model.family:
        return strings.OTHER_FAMILY
    return "" if any(info.size_bytes for info in tables.of_family(taught.family)) else strings.NOTHING_SAVED


def _read_only(info: TableInfo) -> str:
    if not info.why_not_saved:
        return ""
    return strings.read_only(recognised(info.family_name), info.why_not_saved)
