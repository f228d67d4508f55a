"""`draftlight tables`: what the shared tables hold, saved, loaded, taken along, erased. No model, no MLX.

A family goes by what people call it (SmolLM2), by its tokenizer's whole name or by the beginning of
its fingerprint. A running Draftlight keeps its family's lock: then it is read here, and not changed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from core.cli import tables_build
from core.cli.console.arguments import out_file, readable_file, whole
from core.cli.console.parser import add_command
from core.errors import TableError
from core.events import LearnedTable, TableInfo, TableStatus
from core.models.library.naming import family_label, readable
from core.system.paths import tables_dir

if TYPE_CHECKING:  # importing it loads numpy, which no other command waits for
    from core.tables.memory import TableMemory, TableResult

_Table = TypeVar("_Table", TableInfo, LearnedTable, TableInfo | LearnedTable)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions and what they take."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(
        name: str, run: Callable[[argparse.Namespace], int], text: str, family: str = ""
    ) -> argparse.ArgumentParser:
        added = add_command(actions, name, text, run)
        if family:
            added.add_argument("family", metavar="FAMILY", help=family)
        return added

    whose = "its name in the list, or the beginning of its fingerprint"
    listing = action("list", _list, "every table: how full, how useful, learned from which models")
    listing.add_argument("--json", action="store_true", help="one JSON object")
    show = action("show", _show, "all that is known of a family's tables", whose)
    show.add_argument("--json", action="store_true", help="one JSON object")
    action("save", _save, "check a family's files and save what is good as a new generation", whose)
    load = action("load", _load, "load a family's tables as a model does, and say how that went", whose)
    load.add_argument("--previous", action="store_true", help="go back to the save before the last")
    export = action("export", _export, "write a copy of one table to a file", whose)
    export.add_argument("path", type=out_file, metavar="FILE")
    export.add_argument("--n", type=whole(), help="context length, if the family has several tables")
    export.add_argument("--slots", type=whole(), help="table size, if the family has several tables")
    export.add_argument("--replace", action="store_true", help="overwrite FILE")
    action("import", _import, "take a table file as its family's table").add_argument(
        "path", type=readable_file, metavar="FILE"
    )
    reset = action("reset", _reset, "erase all that was learned, older generations too", f"{whose}, or all")
    reset.add_argument("--yes", action="store_true", help="do not ask")
    tables_build.add_arguments(
        add_command(actions, "build", "learn a table beforehand, from a model's own answers or from texts")
    )


def _list(options: argparse.Namespace) -> int:
    from core.tables.memory import table_list

    listed = table_list(_memory(), "cli")
    tables, refused = listed.tables, listed.set_aside
    if options.json:
        print(msgspec.json.encode(listed).decode())
        return 0
    if not tables:
        print("No tables yet. They grow while you chat.")
    rows: list[tuple[str, ...]] = [
        ("family", "fingerprint", "n", "entries", "hits", "accepted", "on disk", "saved", "learned from")
    ]
    rows += [_row(info) for info in tables]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows if tables else ():
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for learned in listed.learned:
        origin = "shipped" if learned.shipped else "built here"
        print(
            f"{_called(learned.family_name)}, {origin}, for {learned.drafter}: {learned.entries:,} entries"
            f" from {learned.learned_from}"
        )
    for text in refused:
        print(f"Cannot be used: {_whose(text, (*tables, *listed.learned))}{text}")
    return 0


def _row(info: TableInfo) -> tuple[str, ...]:
    figures = info.figures
    return (
        _called(info.family_name),
        info.family[:12],
        str(info.n),
        f"{figures.used:,} of {figures.slots:,} ({figures.used / figures.slots:.1%})",
        f"{figures.hits:,}",
        f"{figures.accepted / figures.tested:.0%}" if figures.tested else "–",
        f"{info.size_bytes / 1024:,.0f} KiB",
        _when(info.updated_s),
        ", ".join(teacher.model for teacher in info.learned_from),
    )


def _show(options: argparse.Namespace) -> int:
    tables = _of_family(_memory().listing()[0], options.family)
    if options.json:
        print(msgspec.json.encode(tables).decode())
        return 0
    for info in tables:
        figures = info.figures
        taught = sum(teacher.entries for teacher in info.learned_from) or 1
        print(f"{_called(info.family_name)}, windows of {info.n} tokens, {figures.slots:,} slots")
        print(f"  tokenizer     {info.family_name}")
        print(f"  fingerprint   {info.family}")
        print(f"  entries       {figures.used:,} ({figures.used / figures.slots:.2%})")
        print(f"  written       {figures.inserts:,} times, {figures.overwrites:,} over another guess")
        print(f"  looked up     {figures.lookups:,} times, {figures.hits:,} found a guess")
        print(f"  accepted      {figures.accepted:,} of {figures.tested:,} tested tokens")
        print(f"  made          {_when(info.created_s)}")
        print(f"  saved         {_when(info.updated_s)}, {info.size_bytes:,} bytes", end="")
        print(", with a generation before" if info.has_previous else "")
        for teacher in info.learned_from:
            print(f"  learned from  {teacher.model} ({teacher.entries / taught:.0%})")
        for day in info.days[-7:]:
            share = f", {day.accepted / day.tested:.0%} of {day.tested:,} accepted" if day.tested else ""
            print(f"  {day.day}    {day.used:,} entries{share}")
    return 0


def _save(options: argparse.Namespace) -> int:
    memory, info = _opened(options.family)
    try:
        return _said("Saved", memory.save(force=True), _called(info.family_name))
    finally:
        memory.close()


def _load(options: argparse.Namespace) -> int:
    memory, info = _opened(options.family)
    try:
        return _said("Loaded", memory.load(previous=options.previous), _called(info.family_name))
    finally:
        memory.close()


def _export(options: argparse.Namespace) -> int:
    memory = _memory()
    wanted = [
        info
        for info in _of_family(memory.listing()[0], options.family)
        if options.n in (None, info.n) and options.slots in (None, info.figures.slots)
    ]
    if len(wanted) != 1:
        shapes = ", ".join(f"--n {info.n} --slots {info.figures.slots}" for info in wanted)
        raise TableError(
            f"{len(wanted)} tables of {options.family} have that shape.",
            f"Choose one of {shapes}." if shapes else "List the tables to see which there are.",
        )
    info = wanted[0]
    done = memory.export(info.family, info.n, info.figures.slots, options.path, replace=options.replace)
    return _said("Exported", done, f"{_called(info.family_name)} to {done.path}")


def _import(options: argparse.Namespace) -> int:
    done = _memory().import_(options.path)
    return _said("Imported", done, f"{_called(done.family_name)} from {done.path}")


def _reset(options: argparse.Namespace) -> int:
    from core.tables.prebuilt import prebuilt_listing

    memory = _memory()
    built = (each for each in prebuilt_listing()[0] if not each.shipped)
    tables: Sequence[TableInfo | LearnedTable] = (*memory.listing()[0], *built)
    if options.family != "all":
        tables = _of_family(tables, options.family)
    families = {info.family: _called(info.family_name) for info in tables}
    entries = sum(info.figures.used if isinstance(info, TableInfo) else info.entries for info in tables)
    names = ", ".join(families.values())
    if not families:
        print("There are no tables.")
    elif options.yes or _agreed(f"Erase the {names} tables? {entries:,} entries are lost, no copy is kept."):
        for family, name in families.items():
            _said("Erased", memory.reset(family), name)
    else:
        print("Nothing was erased.")
        return 1
    return 0


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise TableError("Nothing was erased, as nobody can be asked here.", "Add --yes.")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _memory() -> TableMemory:
    from core.tables.folder import TableFolder
    from core.tables.memory import TableMemory

    def say(status: TableStatus) -> None:
        for note in status.notes:
            print(note, file=sys.stderr)

    return TableMemory(TableFolder(tables_dir()), say)


def _opened(family: str) -> tuple[TableMemory, TableInfo]:
    """A memory that has the family's tables, as after a model of it was loaded."""
    from core.drafting.ngram_table import ID_END

    memory = _memory()
    info = _of_family(memory.listing()[0], family)[0]
    memory.open(info.family, info.family_name, ID_END, "")
    return memory, info


def _of_family(tables: Sequence[_Table], wanted: str) -> tuple[_Table, ...]:
    """The tables of one family. Raises `TableError` with the known ones."""
    name = wanted.lower()
    found = tuple(
        info for info in tables if name in (info.family_name.lower(), _called(info.family_name).lower())
    )
    found = found or tuple(info for info in tables if len(name) >= 4 and info.family.startswith(name))
    if len({info.family for info in found}) == 1:
        return found
    known = sorted({f"{_called(info.family_name)} ({info.family[:12]})" for info in tables})
    raise TableError(
        f"“{wanted}” names {'several families' if found else 'no family that has tables'}.",
        f"Choose one of {', '.join(known)}." if known else "There are no tables yet.",
    )


def _called(family_name: str) -> str:
    """What people call the family: `SmolLM2-135M-Instruct` is SmolLM2."""
    return family_label([readable(family_name)])


def _whose(text: str, tables: Sequence[TableInfo | LearnedTable]) -> str:
    """The family's name before what is said of a file that begins with its fingerprint, if it is known."""
    names = (info.family_name for info in tables if text.startswith(info.family[:16]))
    return next((f"{_called(name)}, " for name in names), "")


def _said(what: str, done: TableResult, whom: str) -> int:
    files = "1 file" if done.files == 1 else f"{done.files} files"
    print(f"{what} {whom}: {done.entries:,} entries, {files}, {done.took_s * 1000:.0f} ms.")
    return 0


def _when(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s)) if unix_s else "never"
