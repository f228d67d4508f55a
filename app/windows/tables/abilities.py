"""Abilities: what can be done with the tables as they stand, and why not otherwise. Pure; no Qt."""

from __future__ import annotations

from dataclasses import dataclass

from app.session.worker.families import recognised
from app.session.worker.tables import Tables
from app.windows.tables import strings
from core.events import LearnedTable, TableInfo


@dataclass(frozen=True)
class Abilities:
    """Of each command why it cannot be given now, in words; empty if it can."""

    save: str
    load: str
    import_: str
    export: str
    reset: str


def abilities_of(tables: Tables, chosen: TableInfo | LearnedTable | None, *, alive: bool) -> Abilities:
    """With `chosen` selected. `alive`: there is a worker to do something."""
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
