"""The window's view of the tables, as a record with a method for each event. Pure.

A list replaces everything. A status replaces the tables of its family, requested or not. One command at a
time runs (`doing`); its result is `told`, and it makes the list outdated (`stale`).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from core.events import (
    Failed,
    LearnedTable,
    ModelInfo,
    TableAction,
    TableDone,
    TableInfo,
    TableList,
    TableStatus,
)
from core.events.tables import TableEvent


class Told(Struct, frozen=True):
    """The result of the last command: `done`, or `failed` with the reason."""

    done: TableDone | None = None
    failed: Failed | None = None


class Tables(Struct, frozen=True):
    """`listed` is False until this worker has sent a list. `doing` is the running command."""

    folder: str = ""
    tables: tuple[TableInfo, ...] = ()
    learned: tuple[LearnedTable, ...] = ()
    set_aside: tuple[str, ...] = ()
    listed: bool = False
    stale: bool = True
    doing: TableAction | None = None
    told: Told | None = None
    model: ModelInfo | None = None

    def table(self, family: str, n: int, slots: int) -> TableInfo | None:
        for info in self.tables:
            if (info.family, info.n, info.figures.slots) == (family, n, slots):
                return info
        return None

    def of_family(self, family: str) -> tuple[TableInfo, ...]:
        """Returns all tables of a family: they are saved, loaded and reset together."""
        return tuple(info for info in self.tables if info.family == family)

    @property
    def disk_bytes(self) -> int:
        """The size of all files, prebuilt tables included."""
        return sum(info.size_bytes for info in self.tables) + sum(one.size_bytes for one in self.learned)


def handle(state: Tables, event: TableEvent) -> Tables:
    match event:
        case TableList():
            return replace(
                state,
                folder=event.folder,
                tables=event.tables,
                learned=event.learned,
                set_aside=event.set_aside,
                listed=True,
                stale=False,
            )
        case TableStatus():
            return replace(state, tables=_merged(state.tables, event), stale=state.stale or bool(event.notes))
        case TableDone():
            return replace(state, doing=None, told=Told(done=event), stale=True)


def fail(state: Tables, event: Failed) -> Tables:
    """Returns the state after a failed command."""
    if event.command == "list_tables":
        return replace(state, told=Told(failed=event))
    return replace(state, doing=None, told=Told(failed=event), stale=True)


def begin(state: Tables, action: TableAction) -> Tables:
    return replace(state, doing=action, told=None)


def dismissed(state: Tables) -> Tables:
    return replace(state, told=None)


def out_of_date(state: Tables) -> Tables:
    """Returns the state with an outdated list: files may have changed."""
    return replace(state, stale=True)


def with_model(state: Tables, model: ModelInfo | None) -> Tables:
    return replace(state, model=model, stale=True)


def without_worker(state: Tables) -> Tables:
    """Clears the state that depends on the worker, after its exit."""
    on_disk = tuple(replace(info, loaded=False, unsaved=0) for info in state.tables if info.size_bytes)
    return replace(state, tables=on_disk, listed=False, stale=True, doing=None, model=None, told=None)


def _merged(tables: tuple[TableInfo, ...], status: TableStatus) -> tuple[TableInfo, ...]:
    """Returns the tables with the family's replaced in place, or put first."""
    others = [info for info in tables if info.family != status.family]
    places = [place for place, info in enumerate(tables) if info.family == status.family]
    place = places[0] if places else 0
    return (*others[:place], *status.tables, *others[place:])
