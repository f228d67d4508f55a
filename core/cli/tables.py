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

from core.cli.arguments import UsageError, add_command, add_quiet, confirmed, out_file, readable_file, whole
from core.errors import RequestError, TableError
from core.events import LearnedTable, TableDone, TableInfo, TableStatus
from core.models.places import family_label, readable
from core.system.paths import tables_dir
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing it loads numpy, which other commands do not need
    from core.rehearsal.rehearsal import Progress, Rehearsal
    from core.tables.gram_count import Corpus, Encode
    from core.tables.leader_count import LeaderCount
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
    export.add_argument("--n", type=whole(), help="context length, if the family has several tables")
    export.add_argument("--slots", type=whole(), help="table size, if the family has several tables")
    export.add_argument("--replace", action="store_true", help="overwrite FILE")
    action("import", _import, "use a table file as its family's table").add_argument(
        "path", type=readable_file, metavar="FILE"
    )
    reset = action(
        "reset", _reset, "erase everything learned, including previous generations", f"{family}, or all"
    )
    reset.add_argument("--yes", action="store_true", help="erase without confirmation")
    _add_build(add_command(actions, "build", "build a table from a model's own answers or from texts"))


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
        print(f"{_label(info.family_name)}, windows of {info.n} tokens, {figures.slots:,} slots")
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
            f"Choose one of {shapes}." if shapes else "List the tables to see which there are.",
        )
    info = wanted[0]
    done = memory.export(info.family, info.n, info.figures.slots, options.path, replace=options.replace)
    return _print_done("Exported", done, f"{_label(info.family_name)} to {done.path}")


def _import(options: argparse.Namespace) -> int:
    done = _memory().import_(options.path)
    return _print_done("Imported", done, f"{_label(done.family_name)} from {done.path}")


def _reset(options: argparse.Namespace) -> int:
    from core.tables.prebuilt import prebuilt_listing

    memory = _memory()
    built = (each for each in prebuilt_listing()[0] if not each.shipped)
    tables: Sequence[TableInfo | LearnedTable] = (*memory.listing()[0], *built)
    if options.family != "all":
        tables = _of_family(tables, options.family)
    families = {info.family: _label(info.family_name) for info in tables}
    entries = sum(info.figures.used if isinstance(info, TableInfo) else info.entries for info in tables)
    names = ", ".join(families.values())
    if not families:
        print("There are no tables.")
    elif options.yes or confirmed(
        f"Erase the {names} tables? {entries:,} entries are lost, no copy is kept."
    ):
        for family, name in families.items():
            _print_done("Erased", memory.reset(family), name)
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
    memory.open(info.family, info.family_name, ID_END, "")
    return memory, info


def _of_family(tables: Sequence[_Table], wanted: str) -> tuple[_Table, ...]:
    """The tables of one family. Raises `TableError` if none or several match."""
    name = wanted.lower()
    found = tuple(
        info for info in tables if name in (info.family_name.lower(), _label(info.family_name).lower())
    )
    found = found or tuple(info for info in tables if len(name) >= 4 and info.family.startswith(name))
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


# ---- draftlight tables build: prebuilt tables from a model's own answers or from texts
#
# From a model: a gram table for `auto`. Finished answers are saved, so Ctrl-C loses only unfinished ones.
# From texts: a frozen table for `cacheback`, in bounded memory, with the counts on disk next to the table
# until it is complete. After an interruption, the same command continues both.
# From texts for `auto`: a second gram table, which takes a minute and restarts after an interruption.

# Needs about 1 GB of memory for counting.
_MOST_TEXT_TOKENS = 3_000_000


def _add_build(build: argparse.ArgumentParser) -> None:
    source = build.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--from-model",
        metavar="MODEL",
        help="answer prompts with this model: starter, a folder, or a hub name",
    )
    source.add_argument(
        "--corpus", nargs="+", type=Path, metavar="PATH", help="text files, or folders of them"
    )
    build.add_argument(
        "--out",
        type=out_file,
        metavar="FILE",
        help="the table to write (auto: default in Draftlight's data)",
    )
    build.add_argument(
        "--kbytes", type=whole(), default=1500, help="approximate size limit of the table (default 1500)"
    )
    build.add_argument(
        "--tokens",
        type=whole(0),
        default=0,
        help=f"for auto: token limit, including earlier runs (default all; for texts {_MOST_TEXT_TOKENS:,})",
    )
    model = build.add_argument_group("from a model")
    model.add_argument(
        "--prompts",
        type=readable_file,
        metavar="F.jsonl",
        help="lines with prompt, class, then (default: bundled prompts)",
    )
    model.add_argument("--max-tokens", type=whole(), default=200, help="of an answer (default 200)")
    model.add_argument("--batch", type=whole(), default=16, help="answers generated at once (default 16)")
    model.add_argument(
        "--ids",
        type=out_file,
        metavar="FILE",
        help="also write the answers as token ids, enough to continue on another machine",
    )
    texts = build.add_argument_group("from texts")
    texts.add_argument(
        "--for",
        dest="drafter",
        choices=("cacheback", "auto"),
        default="cacheback",
        help="drafter of the table (default cacheback); the options below apply to cacheback",
    )
    texts.add_argument(
        "--tokenizer",
        metavar="MODEL",
        default="starter",
        help="model of the family (default starter)",
    )
    texts.add_argument("--leader-tokens", type=whole(), default=1, help="tokens per leader (default 1)")
    texts.add_argument("--follower-tokens", type=whole(), default=3, help="tokens per follower (default 3)")
    texts.add_argument("--leaders", type=whole(), default=1 << 20, help="maximum leaders (default 1048576)")
    texts.add_argument("--followers", type=whole(), default=128, help="maximum per leader (default 128)")
    texts.add_argument("--least-count", type=whole(), default=2, help="minimum follower count (default 2)")
    add_quiet(build)
    build.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build a table and print its size. Raises `TableError`, `ModelError`, `RequestError`."""
    if not options.corpus:
        return _from_model(options)
    return _texts_for_auto(options) if options.drafter == "auto" else _from_texts(options)


def _from_model(options: argparse.Namespace) -> int:
    from core.models.runtime import prepare

    prepare()
    from core.models.loader import load
    from core.rehearsal.rehearsal import Rehearsal, RehearsalPlan
    from core.rehearsal.streams import (
        default_conversations,
        read_conversations,
        read_records,
        save_ids,
        shipped_ids,
    )
    from core.tables.gram_count import Pruning
    from core.tables.prebuilt import rehearsal_paths

    conversations = read_conversations(options.prompts or default_conversations())
    loaded = load(options.from_model)
    records, table = rehearsal_paths(loaded.info.name)
    if options.out is not None:
        records, table = options.out.with_name(f"{options.out.name}.answers.jsonl"), options.out
    plan = RehearsalPlan(
        records,
        table,
        batch=options.batch,
        max_tokens=options.max_tokens,
        most_tokens=options.tokens,
        pruning=Pruning(most_bytes=options.kbytes * 1024),
    )
    rehearsal = Rehearsal(loaded, conversations, plan, shipped_ids(loaded.info))
    stopped = _answer(rehearsal, options.quiet)
    done = [rehearsal.progress(), *rehearsal.make_table()][-1]
    if not done.contexts:
        print("Nothing was answered, so there is no table.", file=sys.stderr)
        return 130 if stopped else 1
    print(
        f"{table}: {done.contexts:,} contexts, {table.stat().st_size / 1024:,.0f} KiB,"
        f" from {done.answered:,} of {done.prompts:,} answers, {done.tokens:,} tokens"
    )
    if options.ids is not None:
        kept = save_ids(options.ids, read_records(records), loaded.info)
        print(
            f"{options.ids}: {len(kept.answers):,} answers, {kept.tokens:,} tokens,"
            f" {options.ids.stat().st_size / 1024:,.0f} KiB"
        )
    if stopped:
        print("Stopped. The same command continues from here.")
    return 130 if stopped else 0


def _answer(rehearsal: Rehearsal, quiet: bool) -> bool:
    """Answer all prompts. Returns whether it was stopped by Ctrl-C."""
    started = time.monotonic()
    line = ProgressLine(quiet)
    first: Progress | None = None
    try:
        for progress in rehearsal.answer():
            first = first or progress
            if line.due():
                speed = (progress.tokens - first.tokens) / (time.monotonic() - started)
                line.say(
                    f"{progress.answered:,} of {progress.prompts:,} answers,"
                    f" {progress.tokens:,} tokens, {speed:.0f} a second"
                )
    except KeyboardInterrupt:
        return True
    finally:
        line.clear()
    return False


def _from_texts(options: argparse.Namespace) -> int:
    from core.models.runtime import prepare

    prepare()
    from core.models.loader import load_family
    from core.tables.gram_count import Corpus
    from core.tables.leader_count import LeaderCount, Shape
    from core.tables.prebuilt import save_frozen

    if options.out is None:
        raise UsageError("A table from texts needs a file to write to.", "Give --out FILE.")
    corpus = Corpus(options.corpus)
    family = load_family(options.tokenizer)
    # An id takes two bytes, or four if the vocabulary needs them; leaders are extra.
    follower_bytes = options.follower_tokens * (2 if family.vocabulary <= 1 << 16 else 4)
    shape = Shape(
        options.leader_tokens,
        options.follower_tokens,
        options.leaders,
        options.followers,
        options.least_count,
        options.kbytes * 1024 // (follower_bytes + 1),
    )

    counted = options.out.with_name(f".{options.out.name}.counted")
    basis = f"{family.family} {corpus.fingerprint()}"
    try:
        with LeaderCount(shape, family.vocabulary, counted, basis=basis) as count:
            if not _counted(count, corpus, family.encode, options.quiet):
                print(f"Stopped. The same command continues from here; until then {counted} stays.")
                return 130
            table = count.table()
            tokens = count.mark.tokens
            if not len(table):
                raise RequestError(
                    f"{tokens:,} tokens are too few for a table.", "Give more text, or --least-count 1."
                )
            learned_from = f"{tokens:,} tokens of text in {len(corpus.files) - corpus.passed_over:,} files"
            save_frozen(
                table,
                options.out,
                family=family.family,
                family_name=family.family_name,
                learned_from=learned_from,
            )
            count.discard()
    except OSError as error:
        raise TableError(f"{options.out} cannot be written: {error}.", "Free disk space.") from error
    followers = sum(len(held) for held in table.entries().values())
    print(
        f"{options.out}: {len(table):,} leaders, {followers:,} followers,"
        f" {options.out.stat().st_size / 1024:,.0f} KiB, from {learned_from}"
    )
    _print_skipped(corpus)
    return 0


def _print_skipped(corpus: Corpus) -> None:
    if corpus.passed_over:
        print(f"{corpus.passed_over:,} files were passed over, as they are no UTF-8 text.")


def _texts_for_auto(options: argparse.Namespace) -> int:
    from core.models.runtime import prepare

    prepare()
    from core.models.loader import load_family
    from core.tables.gram_count import Corpus, Pruning, TextGrams
    from core.tables.prebuilt import save_grams, texts_path

    corpus = Corpus(options.corpus)
    family = load_family(options.tokenizer)
    grams = TextGrams(corpus, family.encode, most_tokens=options.tokens or _MOST_TEXT_TOKENS)
    line = ProgressLine(options.quiet)
    try:
        for counted in grams.read():
            if line.due():
                line.say(f"{counted.share:.0%} of the text, {counted.tokens:,} tokens")
        table = grams.table(Pruning(most_bytes=options.kbytes * 1024))
    except KeyboardInterrupt:
        print("Stopped. Nothing was written.")
        return 130
    finally:
        line.clear()
    if not len(table):
        raise RequestError("The files contain no text to learn from.", "Give files with text.")
    counted = grams.counted
    learned_from = f"{counted.tokens:,} tokens of text"
    path = options.out or texts_path(family.family_name)
    save_grams(table, path, family=family.family, family_name=family.family_name, learned_from=learned_from)
    print(f"{path}: {len(table):,} contexts, {path.stat().st_size / 1024:,.0f} KiB, from {learned_from}")
    if counted.share < 1.0:
        print(f"That was {counted.share:.0%} of the text. --tokens reads more, at 320 bytes of memory each.")
    _print_skipped(corpus)
    return 0


def _counted(count: LeaderCount, corpus: Corpus, encode: Encode, quiet: bool) -> bool:
    """Count the remaining text. Returns False if stopped by Ctrl-C."""
    line = ProgressLine(quiet)
    try:
        for piece in corpus.pieces(encode, after=count.mark.pieces):
            count.add(piece.ids, starts=piece.starts)
            if line.due():
                share = corpus.read_bytes / max(corpus.size_bytes, 1)
                line.say(f"{share:.0%} of the text, {count.mark.tokens:,} tokens")
    except KeyboardInterrupt:
        return False
    finally:
        line.clear()
    return True
