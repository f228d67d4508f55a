"""The tables that drafters learn into: what they hold, and what can be done with them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from core.events.wire import Wire

TableMoment = Literal["warm", "cold", "learned", "saved", "failed"]
TableAction = Literal["save", "load", "reset", "export", "import"]


class TableFigures(Struct, frozen=True):
    """Counters of one shared table since it was made, earlier runs of Draftlight included.

    `used` of `slots` hold a guess; `inserts` counts all writes, `overwrites` those that replaced a
    different guess; of `lookups`, `hits` found one. `tested` and `accepted` count drafted tokens.
    """

    used: int = 0
    slots: int = 0
    inserts: int = 0
    overwrites: int = 0
    lookups: int = 0
    hits: int = 0
    tested: int = 0
    accepted: int = 0


class TableUse(Struct, frozen=True):
    """A shared table in one answer: how full it is, and what it gave.

    `used` of `slots` hold a guess; `used_before` did when the answer began: the table was cold if
    none did. Of the answer's `lookups`, `hits` found a guess.
    """

    used: int
    slots: int
    used_before: int
    lookups: int
    hits: int


class TableTeacher(Struct, frozen=True):
    """A model and how many entries were written or changed while it was loaded."""

    model: str
    entries: int


class TableDay(Struct, frozen=True):
    """One day (like 2026-11-21) on which a table changed: its entries then, the day's tested and accepted."""

    day: str
    used: int
    tested: int
    accepted: int


class TableInfo(Struct, frozen=True):
    """One table: of a tokenizer family, for windows of `n` tokens.

    `loaded`: in memory, and `unsaved` entries were written or changed since it was last saved.
    `size_bytes` on disk, 0 if it was never saved; `updated_s` (Unix time) is when it was. `days` are
    the latest, oldest first. `why_not_saved` says why it is only read here; empty if it is saved.
    """

    family: str
    family_name: str
    n: int
    figures: TableFigures
    learned_from: tuple[TableTeacher, ...] = ()
    days: tuple[TableDay, ...] = ()
    created_s: float = 0.0
    updated_s: float = 0.0
    size_bytes: int = 0
    has_previous: bool = False
    loaded: bool = False
    unsaved: int = 0
    why_not_saved: str = ""


class ListTables(Wire, frozen=True):
    """Every table in memory and on disk."""

    request: str


class SaveTables(Wire, frozen=True):
    """Save what the loaded family's tables have learned, now."""

    request: str


class LoadTables(Wire, frozen=True):
    """Read the loaded family's saved tables again; what was learned since the last save is dropped.

    `previous` takes the generation before the last save and makes it the current one.
    """

    request: str
    previous: bool = False


class ResetTable(Wire, frozen=True):
    """Forget all that was learned for `family` (a fingerprint): in memory, on disk, older generations too."""

    request: str
    family: str


class ExportTable(Wire, frozen=True):
    """Write a copy of one table to `path`, which must not exist unless `replace` is set."""

    request: str
    family: str
    n: int
    slots: int
    path: str
    replace: bool = False


class ImportTable(Wire, frozen=True):
    """Take the table file at `path` as the table of its family; the one it had becomes the previous."""

    request: str
    path: str


class LearnedTable(Struct, frozen=True):
    """A table learned beforehand: of a model's own answers, for the `auto` drafter, or of texts.

    Chats never change it. `shipped` came with Draftlight; the others were built or rehearsed here.
    `entries` are the contexts it knows a continuation of.
    """

    file: str
    family: str
    family_name: str
    drafter: Literal["auto", "cacheback"]
    shipped: bool
    learned_from: str
    entries: int
    size_bytes: int
    updated_s: float


class TableStatus(Wire, frozen=True):
    """What became of the loaded family's tables, unasked.

    `moment`: `warm` and `cold` after a model was loaded (with saved tables, without any), `learned`
    after an answer, `saved` and `failed` after a save. `calibrated`: what `auto` learned about its
    guesses is there, too. `notes` are sentences to show: files set aside, why nothing is saved;
    `refused`: some of them are about saved files that cannot be used.
    """

    moment: TableMoment
    family: str
    family_name: str
    tables: tuple[TableInfo, ...] = ()
    calibrated: bool = False
    took_s: float = 0.0
    notes: tuple[str, ...] = ()
    refused: bool = False


class TableList(Wire, frozen=True):
    """Answer to `list_tables`: the loaded family's first, then by name.

    `folder` is where they are kept, `set_aside` the files in it that could not be used. `learned`
    are those learned beforehand.
    """

    request: str
    folder: str
    tables: tuple[TableInfo, ...]
    set_aside: tuple[str, ...] = ()
    learned: tuple[LearnedTable, ...] = ()


class TableDone(Wire, frozen=True):
    """A table command is done. `entries` were saved, loaded, removed, exported or imported.

    `files` counts what was written or removed. `path` is where an export went or an import came from.
    """

    request: str
    action: TableAction
    family: str
    family_name: str
    entries: int
    files: int
    took_s: float
    path: str = ""
    notes: tuple[str, ...] = ()


TableCommand = ListTables | SaveTables | LoadTables | ResetTable | ExportTable | ImportTable
TableEvent = TableStatus | TableList | TableDone
