"""`draftlight generate`: one answer in the terminal, as text or as JSON events."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from core.cli.parser import add_model
from core.cli.settings_flags import add_settings, settings_from
from core.errors import DraftlightError, RequestError
from core.events import (
    Attachment,
    Effective,
    Finished,
    Generate,
    Message,
    Stats,
    TableStatus,
    Token,
    encode,
    failure,
)
from core.paths import tables_dir
from core.text import well_formed_record


class FileError(RequestError):
    """A file that was named cannot be used."""

    code = "bad-file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", help="the question")
    source.add_argument("--prompt-file", type=Path, metavar="F", help="the question, from a text file")
    source.add_argument("--messages", type=Path, metavar="F.json", help='[{"role": …, "content": …}, …]')
    parser.add_argument("--document", type=Path, metavar="F", help="a text to ask about")
    add_settings(parser)
    parser.add_argument("--json", action="store_true", help="one event a line")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Answer what `options` ask; returns the exit status. Raises `DraftlightError` kinds."""
    settings = settings_from(options)
    messages = _messages(options)
    from core.models.runtime import prepare

    prepare()
    from core.engine import Engine
    from core.models.blas_threads import BlasThreads
    from core.tables.folder import TableFolder
    from core.tables.memory import TableMemory

    def say(status: TableStatus) -> None:
        for note in status.notes:
            print(note, file=sys.stderr)

    engine = Engine(TableMemory(TableFolder(tables_dir()), say), threads=BlasThreads())
    request = Generate("cli", messages, settings)
    try:
        engine.load(options.model)
        for event in engine.generate(request):
            if options.json:
                sys.stdout.write(encode(event).decode())
            elif isinstance(event, Token):
                sys.stdout.write(event.text)
            elif isinstance(event, Finished):
                sys.stdout.write("\n")
                print(summary(event.stats, event.effective), file=sys.stderr)
            sys.stdout.flush()
    except DraftlightError as error:
        if options.json:
            sys.stdout.write(encode(failure(error, command="generate", request="cli")).decode())
        raise
    finally:
        engine.close()
    return 0


def summary(stats: Stats, effective: Effective) -> str:
    """One line of figures, and one for each thing that was asked for and did not happen."""
    parts = [
        f"{stats.tokens_per_s:.1f} tok/s",
        f"TTFT {stats.ttft_s:.2f} s",
        f"{stats.tokens:,} tokens",
    ]
    if stats.skipped_tokens:
        held = stats.prompt_tokens - stats.skipped_tokens
        chosen = f" ({effective.scorer})" if effective.scorer else ""
        parts.append(f"read {held:,} of {stats.prompt_tokens:,} tokens{chosen}")
    if stats.tested:
        parts.append(f"{stats.accepted}/{stats.tested} drafts accepted ({stats.acceptance:.0%})")
    parts += [f"mean {stats.mean_per_step:.1f}/step", effective.drafter]
    lines = [" · ".join(parts)]
    lines += [f"{c.setting}: {c.used} instead of {c.asked}, because {c.reason}" for c in effective.changes]
    return "\n".join(lines)


def _messages(options: argparse.Namespace) -> tuple[Message, ...]:
    attachments: tuple[Attachment, ...] = ()
    if options.document:
        attachments = (Attachment(options.document.name, _text(options.document)),)
    if options.messages:
        try:
            messages = msgspec.json.decode(options.messages.read_bytes(), type=tuple[Message, ...])
        except (OSError, msgspec.DecodeError) as error:
            raise FileError(
                f"{options.messages} cannot be read as messages: {error}.",
                'It takes a list like [{"role": "user", "content": "Hello"}].',
            ) from None
        if messages and attachments:
            last = messages[-1]
            messages = (*messages[:-1], Message(last.role, last.content, (*last.attachments, *attachments)))
        return well_formed_record(messages)
    prompt = options.prompt if options.prompt is not None else _text(options.prompt_file)
    return well_formed_record((Message("user", prompt, attachments),))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} is not UTF-8 text.", "Save it as plain UTF-8 text.") from None
