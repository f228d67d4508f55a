"""`draftlight tables`: list, save, load, export, import, erase and build tables, without loading a model.

A family is named by its short name (SmolLM2), its tokenizer's full name, or a prefix of its fingerprint.
While a running Draftlight has a family loaded, its tables are locked: they can be listed, but not changed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from core.cli.arguments import add_command, add_quiet, confirmed, out_file, readable_file, whole
from core.errors import RequestError, TableError
from core.events import LearnedTable, TableDone, TableFigures, TableInfo, TableStatus
from core.folders.places import family_label, readable
from core.system.paths import tables_dir
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing it loads numpy, which other commands do not need
    from core.tables.memory import TableMemory


_Table = TypeVar("_Table", TableInfo, LearnedTable, TableInfo | LearnedTable)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(
        name: str, run: Callable[[argparse.Namespace], int], text: str, family: str = ""
    ) -> argparse.ArgumentParser:
        added = add_command(actions, name, text, run)
        if family:
            added.add_argument("family", metavar="FAMILY", help=family)
        return added

    family = "the name of the family, or a prefix of its fingerprint"
    listing = action("list", _list, "list all tables with their size, use and source models")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    show = action("show", _show, "show all figures of a family's tables", family)
    show.add_argument("--json", action="store_true", help="print one JSON object")
    action("save", _save, "check a family's files and save the valid tables as a new generation", family)
    load = action("load", _load, "load a family's tables as for a model, and report the result", family)
    load.add_argument("--previous", action="store_true", help="load the previous generation")
    export = action("export", _export, "write a copy of one table to a file", family)
    export.add_argument("path", type=out_file, metavar="FILE")
    export.add_argument("--n", type=whole(0), help="context length, if the family has several tables")
    export.add_argument("--slots", type=whole(), help="table size, if the family has several tables")
    export.add_argument("--replace", action="store_true", help="overwrite FILE")
    action("import", _import, "use a table file as its family's table").add_argument(
        "path", type=readable_file, metavar="FILE"
    )
    reset = action(
        "reset", _reset, "erase everything learned, including previous generations", f"{family}, or all"
    )
    reset.add_argument("--yes", action="store_true", help="erase without confirmation")
    _add_build(add_command(actions, "build", "build a frozen table for cacheback from texts"))


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
        ("family", "fingerprint", "n", "entries", "hits", "accepted", "on disk", "saved")
    ]
    rows += [_row(info) for info in tables]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows if tables else ():
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for learned in listed.learned:
        origin = "shipped" if learned.shipped else "built here"
        print(
            f"{_label(learned.family_name)}, {origin}, for {learned.drafter}: {learned.entries:,} entries"
            f" from {learned.learned_from}"
        )
    for text in refused:
        print(f"Cannot be used: {_family_prefix(text, (*tables, *listed.learned))}{text}")
    return 0


def _row(info: TableInfo) -> tuple[str, ...]:
    figures = info.figures
    return (
        _label(info.family_name),
        info.family[:12],
        str(info.n or "0 to 4"),
        f"{figures.used:,} of {figures.slots:,} ({figures.used / figures.slots:.1%})",
        f"{figures.hits:,}",
        f"{figures.accepted / figures.tested:.0%}" if figures.tested else "–",
        f"{info.size_bytes / 1024:,.0f} KiB",
        _when(info.updated_s),
    )


def _show(options: argparse.Namespace) -> int:
    tables = _of_family(_memory().listing()[0], options.family)
    if options.json:
        print(msgspec.json.encode(tables).decode())
        return 0
    for info in tables:
        figures = info.figures
        print(f"{_label(info.family_name)}, windows of {info.n or '0 to 4'} tokens, {figures.slots:,} slots")
        print(f"  tokenizer     {info.family_name}")
        print(f"  fingerprint   {info.family}")
        print(f"  entries       {figures.used:,} ({figures.used / figures.slots:.2%})")
        print(f"  written       {figures.inserts:,} times, {figures.overwrites:,} over another guess")
        print(f"  looked up     {figures.lookups:,} times, {figures.hits:,} found a guess")
        print(f"  accepted      {figures.accepted:,} of {figures.tested:,} tested tokens")
        print(f"  made          {_when(info.created_s)}")
        print(f"  saved         {_when(info.updated_s)}, {info.size_bytes:,} bytes", end="")
        print(", with a generation before" if info.has_previous else "")
    return 0


def _save(options: argparse.Namespace) -> int:
    memory, info = _opened(options.family)
    try:
        return _print_done("Saved", memory.save(force=True), _label(info.family_name))
    finally:
        memory.close()


def _load(options: argparse.Namespace) -> int:
    memory, info = _opened(options.family)
    try:
        return _print_done("Loaded", memory.load(previous=options.previous), _label(info.family_name))
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
            f"Choose one of {shapes}." if shapes else "List the tables to see which exist.",
        )
    info = wanted[0]
    done = memory.export(info.family, info.n, info.figures.slots, options.path, replace=options.replace)
    return _print_done("Exported", done, f"{_label(info.family_name)} to {done.path}")


def _import(options: argparse.Namespace) -> int:
    done = _memory().import_(options.path)
    return _print_done("Imported", done, f"{_label(done.family_name)} from {done.path}")


def _reset(options: argparse.Namespace) -> int:
    from core.tables.files import TableFolder
    from core.tables.prebuilt import built_dir, erase_built, prebuilt_listing

    memory = _memory()
    prebuilt, unusable = prebuilt_listing()
    tables: list[TableInfo | LearnedTable] = [*memory.listing()[0]]
    tables += [each for each in prebuilt if not each.shipped]
    known = {info.family[:16] for info in tables}
    damaged = TableFolder(tables_dir()).families() - known
    tables += [TableInfo(family, family, 0, TableFigures()) for family in sorted(damaged)]
    chosen = tables if options.family == "all" else _of_family(tables, options.family)
    families = {info.family: _label(info.family_name) for info in chosen}
    entries = sum(info.figures.used if isinstance(info, TableInfo) else info.entries for info in chosen)
    names = ", ".join(families.values()) or "damaged"
    if not (families or unusable):
        print("There are no tables.")
    elif options.yes or confirmed(
        f"Erase the {names} tables? {entries:,} entries are lost, no copy is kept."
    ):
        for family, name in families.items():
            _print_done("Erased", memory.reset(family), name)
        if options.family == "all":
            erase_built(built_dir(), "")  # built tables whose family cannot be read
    else:
        print("Nothing was erased.")
        return 1
    return 0


def _memory() -> TableMemory:
    from core.tables.files import TableFolder
    from core.tables.memory import TableMemory

    def say(status: TableStatus) -> None:
        for note in status.notes:
            print(note, file=sys.stderr)

    return TableMemory(TableFolder(tables_dir()), say)


def _opened(family: str) -> tuple[TableMemory, TableInfo]:
    """A `TableMemory` with the family's tables open, as when one of its models is loaded."""
    from core.drafting.ngram_mod import ID_END

    memory = _memory()
    info = _of_family(memory.listing()[0], family)[0]
    memory.open(info.family, info.family_name, ID_END)
    return memory, info


def _of_family(tables: Sequence[_Table], wanted: str) -> tuple[_Table, ...]:
    """The tables of one family. Raises `TableError` if none or several match."""
    name = wanted.lower()
    found = tuple(
        info for info in tables if name in (info.family_name.lower(), _label(info.family_name).lower())
    )
    found = found or tuple(
        info for info in tables if len(name) >= 4 and info.family.startswith(name[: len(info.family)])
    )
    if len({info.family for info in found}) == 1:
        return found
    known = sorted({f"{_label(info.family_name)} ({info.family[:12]})" for info in tables})
    raise TableError(
        f"“{wanted}” matches {'several families' if found else 'no family that has tables'}.",
        f"Choose one of {', '.join(known)}." if known else "There are no tables yet.",
    )


def _label(family_name: str) -> str:
    """The short name of a family: SmolLM2 for `SmolLM2-135M-Instruct`."""
    return family_label([readable(family_name)])


def _family_prefix(text: str, tables: Sequence[TableInfo | LearnedTable]) -> str:
    """The family name with a comma, if the message `text` starts with the fingerprint of a known family."""
    names = (info.family_name for info in tables if text.startswith(info.family[:16]))
    return next((f"{_label(name)}, " for name in names), "")


def _print_done(what: str, done: TableDone, whom: str) -> int:
    files = "1 file" if done.files == 1 else f"{done.files} files"
    print(f"{what} {whom}: {done.entries:,} entries, {files}, {done.took_s * 1000:.0f} ms.")
    return 0


def _when(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s)) if unix_s else "never"


# ---- draftlight tables build: a frozen table for `cacheback` from texts

# Counting takes about 40 bytes of memory per token.
_MOST_TOKENS = 20_000_000


def _add_build(build: argparse.ArgumentParser) -> None:
    build.add_argument(
        "--corpus", nargs="+", type=Path, required=True, metavar="PATH", help="text files, or folders of them"
    )
    build.add_argument(
        "--tokenizer", metavar="MODEL", default="starter", help="model of the family (default starter)"
    )
    build.add_argument(
        "--out", type=out_file, metavar="FILE", help="the table to write (default in Draftlight's data)"
    )
    for flag, default, text in (
        ("--tokens", _MOST_TOKENS, "tokens of text to count, at 40 bytes of memory each"),
        ("--kbytes", 1500, "approximate size limit of the table"),
        ("--leader-tokens", 1, "tokens per leader"),
        ("--follower-tokens", 3, "tokens per follower"),
        ("--leaders", 1 << 20, "maximum leaders"),
        ("--followers", 128, "maximum per leader"),
        ("--least-count", 2, "minimum follower count"),
    ):
        build.add_argument(flag, type=whole(), default=default, help=f"{text} (default {default})")
    add_quiet(build)
    build.set_defaults(run=_build)


def _build(options: argparse.Namespace) -> int:
    """Build a table and print its size. Raises `TableError`, `ModelError`, `RequestError`."""
    from core.models.runtime import prepare

    prepare()
    from core.models.loader import load_family
    from core.tables.build import Corpus, LeaderCount, Shape
    from core.tables.prebuilt import frozen_path, save_frozen

    corpus = Corpus(options.corpus)
    family = load_family(options.tokenizer)
    path = options.out or frozen_path(family.family_name)
    # An id takes two bytes, or four if the vocabulary needs them; leaders are extra.
    follower_bytes = options.follower_tokens * (2 if family.vocabulary <= 1 << 16 else 4)
    count = LeaderCount(
        Shape(
            options.leader_tokens,
            options.follower_tokens,
            options.leaders,
            options.followers,
            options.least_count,
            options.kbytes * 1024 // (follower_bytes + 1),
        ),
        family.vocabulary,
    )
    line = ProgressLine(options.quiet)
    for piece in corpus.pieces(family.encode):
        count.add(piece.ids[: options.tokens - count.tokens], starts=piece.starts)
        if line.due():
            share = corpus.read_bytes / max(corpus.size_bytes, 1)
            line.say(f"{share:.0%} of the text, {count.tokens:,} tokens")
        if count.tokens >= options.tokens:
            break
    line.clear()
    table = count.table()
    if not len(table):
        raise RequestError(
            f"{count.tokens:,} tokens are too few for a table.", "Use more text, or --least-count 1."
        )
    learned_from = f"{count.tokens:,} tokens of text"
    save_frozen(table, path, family=family.family, family_name=family.family_name, learned_from=learned_from)
    followers = sum(len(held) for held in table.entries().values())
    print(
        f"{path}: {len(table):,} leaders, {followers:,} followers,"
        f" {path.stat().st_size / 1024:,.0f} KiB, from {learned_from}"
    )
    if corpus.passed_over:
        print(f"{corpus.passed_over:,} files were skipped because they are not UTF-8 text.")
    return 0
