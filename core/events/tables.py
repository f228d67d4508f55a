"""The drafters' tables: content and commands."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from core.events.wire import Wire

TableMoment = Literal["warm", "cold", "learned", "saved", "failed"]
TableAction = Literal["save", "load", "reset", "export", "import"]
# Bounds, because table files hold these structs, too.
Count = Annotated[int, Meta(ge=0, lt=2**62)]


class TableFigures(Struct, frozen=True):
    """Counters of one shared table since it was created.

    `used` of `slots` are occupied. `inserts`: all writes; `overwrites`: those that replaced another token.
    `hits` of `lookups` found one. `tested`, `accepted`: drafted tokens.
    """

    used: Count = 0
    slots: Count = 0
    inserts: Count = 0
    overwrites: Count = 0
    lookups: Count = 0
    hits: Count = 0
    tested: Count = 0
    accepted: Count = 0


class TableUse(Struct, frozen=True):
    """A shared table's part in one answer.

    `used` of `slots` are occupied, `used_before` at the start: 0 means a cold table. `hits` of the answer's
    `lookups` found a token.
    """

    used: int
    slots: int
    used_before: int
    lookups: int
    hits: int


class TableInfo(Struct, frozen=True):
    """One table of a tokenizer family, for windows of `n` tokens; 0: short n-grams, contexts of 0 to 4.

    `loaded`: in memory, with `unsaved` entries changed since the last save at `updated_s` (Unix time).
    `size_bytes`: on disk, 0 if never saved. `why_not_saved`: why the table is read-only; empty if it is
    saved.
    """

    family: str
    family_name: str
    n: int
    figures: TableFigures
    created_s: float = 0.0
    updated_s: float = 0.0
    size_bytes: int = 0
    has_previous: bool = False
    loaded: bool = False
    unsaved: int = 0
    why_not_saved: str = ""


class ListTables(Wire, frozen=True):
    """Lists all tables in memory and on disk."""

    request: str


class SaveTables(Wire, frozen=True):
    """Saves the loaded family's tables now."""

    request: str


class LoadTables(Wire, frozen=True):
    """Reloads the loaded family's saved tables and drops unsaved changes.

    `previous`: restores the generation before the last save.
    """

    request: str
    previous: bool = False


class ResetTable(Wire, frozen=True):
    """Erases the tables of `family` (a fingerprint) in memory and on disk, with older generations."""

    request: str
    family: str


class ExportTable(Wire, frozen=True):
    """Copies one table to `path`, which must not exist unless `replace` is set."""

    request: str
    family: str
    n: int
    slots: int
    path: str
    replace: bool = False


class ImportTable(Wire, frozen=True):
    """Makes the file at `path` its family's table; the old one becomes the previous generation."""

    request: str
    path: str


class LearnedTable(Struct, frozen=True):
    """A read-only table built from a model's answers, for the `auto` drafter, or from texts.

    `shipped`: part of Draftlight; others were built on this machine. `entries`: number of contexts.
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
    """State of the loaded family's tables, sent without a request.

    - `moment`: `warm` or `cold` after loading a model (with or without saved tables), `learned` after an
      answer, `saved` or `failed` after a save.
    - `notes`: sentences to display, such as files set aside. `refused`: some concern unusable saved files.
    """

    moment: TableMoment
    family: str
    family_name: str
    tables: tuple[TableInfo, ...] = ()
    took_s: float = 0.0
    notes: tuple[str, ...] = ()
    refused: bool = False


class TableList(Wire, frozen=True):
    """Answer to `list_tables`: the loaded family's tables first, then by name.

    `folder`: of the tables; `set_aside`: unusable files in it. `learned`: read-only tables.
    """

    request: str
    folder: str
    tables: tuple[TableInfo, ...]
    set_aside: tuple[str, ...] = ()
    learned: tuple[LearnedTable, ...] = ()


class TableDone(Wire, frozen=True):
    """A table command succeeded. `entries`: saved, loaded, removed, exported or imported.

    `files`: written or removed. `path`: target of an export, source of an import.
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
