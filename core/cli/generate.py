"""`draftlight generate`: one answer in the terminal, as text or as JSON events."""

from __future__ import annotations

import argparse
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from core.answer_format import AnswerFormat, AnswerSplitter
from core.cli import json_lines
from core.cli.arguments import add_model, add_quiet, add_settings, readable_file, settings_from
from core.documents.strings import guessed_encoding, left_out_in_full
from core.errors import RequestError, reason_of
from core.events import (
    Attachment,
    ClusterEnded,
    Finished,
    Generate,
    Image,
    Message,
    ModelInfo,
    PrefillProgress,
    ReadingMap,
    TableStatus,
    Token,
)
from core.events.wire import well_formed_record
from core.origins import Conversation
from core.prefill.forecast import display
from core.settings import Settings, read
from core.system.files import read_limited, read_stream
from core.system.paths import tables_dir
from core.system.prepared import prepared
from core.system.terminal import ProgressLine, write_raw

if TYPE_CHECKING:
    from core.documents.reading import Document

_STDIN = Path("-")
# Limit of a prompt or a list of messages. No context holds more.
_MOST_BYTES = 64 * 2**20
# Code of the errors about files given on the command line.
_BAD_FILE = "bad-file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_model(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", help="the question")
    source.add_argument(
        "--prompt-file",
        type=lambda text: _STDIN if text == "-" else readable_file(text),
        metavar="F",
        help="a text file with the question; - for stdin",
    )
    source.add_argument(
        "--messages", type=readable_file, metavar="F.json", help='[{"role": …, "content": …}, …]'
    )
    parser.add_argument(
        "--document",
        type=readable_file,
        action="append",
        default=[],
        metavar="F",
        help="a text, PDF, Word or HTML file to ask about; pages without text are images; repeatable",
    )
    parser.add_argument(
        "--image",
        type=readable_file,
        action="append",
        default=[],
        metavar="F",
        help="an image to ask about, before the question; repeatable",
    )
    add_settings(parser)
    parser.add_argument("--json", action="store_true", help="print one event per line (docs/json.md)")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Answer the prompt. Raises `DraftlightError` kinds."""
    from core.cluster.group import launched
    from core.cluster.ranks import follow, load

    launch = launched()
    if launch and launch.rank:
        return follow(launch)
    settings_from(options)  # report errors before a model is loaded
    documents: dict[str, Document] = {}
    with ProgressLine(options.quiet) as line:
        messages = _messages(options, line, documents)
    for attachment in messages[-1].attachments if messages and options.document else ():
        guess = documents[attachment.name].guess if attachment.name in documents else None
        if options.json:
            size, coded = len(attachment.text), (guess.encoding, guess.others) if guess else ("", ())
            json_lines.write_event(
                json_lines.DocumentRead(attachment.name, size, attachment.left_out, *coded)
            )
        if guess:
            print(guessed_encoding(attachment.name, guess.encoding, guess.others), file=sys.stderr)
        if missing := left_out_in_full(attachment.left_out):
            print(f"{attachment.name}: {missing}", file=sys.stderr)
    _tell(messages[-1].images if messages and options.image else (), options)
    from core.models.runtime import prepare

    prepare()
    from core.engine.engine import Engine
    from core.tables.files import TableFolder
    from core.tables.memory import TableMemory

    with ProgressLine(options.quiet) as line, ExitStack() as after:

        def say(status: TableStatus) -> None:
            line.clear()
            for note in status.notes:
                print(note, file=sys.stderr)

        line.say(f"Loading {options.model}")
        engine = Engine(TableMemory(TableFolder(tables_dir()), say))
        try:
            if launch:
                engine.use(load(options.model, lambda stage, _: line.say(stage), engine.make_room, _ended))
            else:
                engine.load(
                    options.model,
                    lambda stage, done: line.say(stage if done is None else f"{stage}, {done:.0%}"),
                )
            info = engine.loaded.info
            settings = settings_from(options, info.settings)
            line.clear()
            for note in model_notes(info, settings):
                print(note, file=sys.stderr)
            refusals = [document.refusal for document in documents.values() if document.refusal]
            if refusals and not info.sees:
                raise refusals[0]
            request = Generate(json_lines.REQUEST, messages, settings, stop_repeating=True)
            if info.sees and any(each.scans for message in messages for each in message.attachments):
                from core.cli.scanned_pages import with_pages

                request = with_pages(engine, request, after, line)
                messages = request.messages
                _tell([image for image in messages[-1].images if image.page], options)
            tokens: list[Token] = []
            reading: ReadingMap | None = None
            for event in engine.generate(request):
                if isinstance(event, PrefillProgress):
                    line.say(display(event, time.monotonic()).words)
                elif isinstance(event, Token | Finished):
                    line.clear()
                if options.json:
                    if isinstance(event, Token):
                        tokens.append(event)
                    elif isinstance(event, ReadingMap):
                        reading = event
                    elif isinstance(event, Finished):
                        event = json_lines.with_origins(event, origins_of(messages, tokens, reading))
                    json_lines.write_event(event)
                elif isinstance(event, Token):
                    if sys.stdout.isatty():
                        print(event.text, end="", flush=True)
                    else:  # a file gets the answer as it is
                        write_raw(sys.stdout, event.text)
                elif isinstance(event, Finished):
                    print(flush=True)
                    print(summary(event), file=sys.stderr)
        finally:
            line.clear()
            engine.close()
    return 0


def _tell(images: Sequence[Image], options: argparse.Namespace) -> None:
    """Print the size of each of `images`, and its omitted parts."""
    for image in images:
        if options.json:
            json_lines.write_event(
                json_lines.ImageRead(image.name, image.width, image.height, image.left_out)
            )
        if missing := left_out_in_full(image.left_out):
            print(f"{image.name}: {missing}", file=sys.stderr)


def _ended(event: ClusterEnded) -> None:
    print(f"\ndraftlight: {event.message} {event.hint}".rstrip(), file=sys.stderr, flush=True)


def origins_of(
    messages: Sequence[Message], tokens: Sequence[Token], reading: ReadingMap | None
) -> json_lines.AnswerOrigins | None:
    """Origins of the answer of `tokens`, without its thoughts and calls; None without sources."""
    given = Conversation(messages)
    if not given.sources:
        return None
    splitter = AnswerSplitter((tokens[0].format if tokens else None) or AnswerFormat())
    answer = "".join(token.text for token in tokens)
    left_out, at = [], 0
    for part in (*splitter.add(answer), *splitter.end()):
        if part.kind != "text":
            left_out.append((at, at + len(part.text)))
        at += len(part.text)
    origins = given.trace(answer, reading.passages if reading else (), left_out)
    names = tuple(source.name for source in given.sources)
    return json_lines.AnswerOrigins(names, origins.runs, origins.facts)


def model_notes(info: ModelInfo, settings: Settings) -> list[str]:
    """Notes on sampling defaults of the model that were out of range and replaced."""
    replaced = [each for each in info.defaults if each.given != each.value]
    notes = [
        f"{each.key}: {each.value:g} instead of the model's own {each.given:g}, which is not allowed"
        for each in replaced
        if read(settings, each.key) == each.value
    ]
    return [*notes, info.defaults_problem] if info.defaults_problem else notes


def summary(finished: Finished) -> str:
    """One line of figures, and one line for each requested setting that was not used."""
    stats, effective = finished.stats, finished.effective
    # An answer of a single step has no decode time.
    parts = [
        f"{stats.tokens_per_s:.1f} tok/s" if stats.tokens_per_s else "no speed: it took one step",
        f"TTFT {stats.ttft_s:.2f} s",
        f"{stats.tokens:,} tokens",
    ]
    if stats.skipped_tokens:
        chosen = f" ({effective.scorer})" if effective.scorer else ""
        cached = f", {stats.reused_tokens:,} cached" if stats.reused_tokens else ""
        read = f"read {stats.read_tokens:,} of {stats.prompt_tokens:,} tokens{cached}"
        parts.append(f"{read}, {stats.skipped_tokens:,} skipped{chosen}")
    if stats.image_tokens:
        parts.append(f"{stats.image_tokens:,} rows of images in {stats.image_s:.2f} s")
    if stats.tested:
        parts.append(f"{stats.accepted}/{stats.tested} drafts accepted ({stats.acceptance:.0%})")
    parts += [f"mean {stats.mean_per_step:.1f}/step", effective.drafter]
    lines = [" · ".join(parts)]
    lines += [f"{c.setting}: {c.used} instead of {c.asked}, because {c.reason}" for c in effective.changes]
    return "\n".join(lines)


def _messages(
    options: argparse.Namespace, line: ProgressLine, documents: dict[str, Document]
) -> tuple[Message, ...]:
    """The conversation; adds the documents that were read to `documents`, by name."""
    attachments = tuple(_document(path, line, documents) for path in options.document)
    images = tuple(_image(path) for path in options.image)
    if options.messages:
        try:
            messages = _decoded_messages(read_limited(options.messages, _MOST_BYTES).removeprefix(BOM_UTF8))
        except (OSError, msgspec.DecodeError) as error:
            raise RequestError(
                f"{options.messages} cannot be read as messages: {reason_of(error)}.",
                'Write a list such as [{"role": "user", "content": "Hello"}], or a request with “messages”.',
                code=_BAD_FILE,
            ) from None
        if messages:
            last = messages[-1]
            more = replace(
                last, attachments=(*last.attachments, *attachments), images=(*last.images, *images)
            )
            messages = (*messages[:-1], more)
        return well_formed_record(messages)
    prompt = options.prompt if options.prompt is not None else _prompt(options.prompt_file)
    return well_formed_record((Message("user", prompt, attachments, images=images),))


def _decoded_messages(body: bytes) -> tuple[Message, ...]:
    """The messages in Draftlight's own form, or as the server reads them: a list, or a request's body."""
    try:
        return msgspec.json.decode(body, type=prepared(tuple[Message, ...]))
    except msgspec.ValidationError:
        given = msgspec.json.decode(body)
    from core.serve.chat import chat_request  # imports the HTTP libraries
    from core.serve.http import ApiError

    try:
        return chat_request(given if isinstance(given, dict) else {"messages": given}).conversation()
    except ApiError as error:
        raise msgspec.ValidationError(error.message) from None


def _document(path: Path, line: ProgressLine, documents: dict[str, Document]) -> Attachment:
    """The text of a file. HTML, PDF and Word are converted in a child process, as in the window."""
    from core.documents.client import DocumentReading
    from core.documents.reading import DocumentLine, quick_document, shown_name

    name = shown_name(path)

    def show(progress: DocumentLine) -> None:
        line.say(f"{name}: {progress.done:,} of {progress.total:,} {progress.unit}")

    documents[name] = document = quick_document(path) or DocumentReading(path, scans=True).run(show)
    return document.attachment(name)


def _image(path: Path) -> Image:
    """The image in a file, as its child process describes it."""
    from core.documents.client import ImageReading

    return replace(ImageReading(path).describe(), path=str(path.absolute()))


def _prompt(path: Path) -> str:
    name = "The input on stdin" if path == _STDIN else str(path)
    try:
        if path == _STDIN:
            return read_stream(sys.stdin.buffer, _MOST_BYTES, name).decode("utf-8-sig")
        return read_limited(path, _MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        why = f"{name} cannot be read: {error.strerror}."
        raise RequestError(why, "Check the path.", code=_BAD_FILE) from None
    except UnicodeDecodeError:
        raise RequestError(f"{name} is not UTF-8 text.", "Use plain UTF-8 text.", code=_BAD_FILE) from None
