"""`draftlight tables build`: prebuilt tables from a model's own answers or from texts.

From a model: a gram table for `auto`. Finished answers are saved, so Ctrl-C loses only unfinished ones.
From texts: a frozen table for `cacheback`, in bounded memory, with the counts on disk next to the table
until it is complete. After an interruption, the same command continues both.
From texts for `auto`: a second gram table, which takes a minute and restarts after an interruption.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.arguments import UsageError, add_quiet, out_file, readable_file, whole
from core.errors import RequestError, TableError
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing these loads MLX, which `prepare()` must come before
    from core.rehearsal.rehearsal import Progress, Rehearsal
    from core.tables.gram_count import Corpus, Encode
    from core.tables.leader_count import LeaderCount

# Needs about 1 GB of memory for counting.
_MOST_TEXT_TOKENS = 3_000_000


def add_arguments(build: argparse.ArgumentParser) -> None:
    """Add the arguments."""
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
