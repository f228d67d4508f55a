"""Messages about the worker process itself, messages as lines, and failures as messages."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
from msgspec import Struct

from core.errors import DraftlightError, Kind, PromptTooLongError, ProtocolError, reason_of
from core.events.answer import AnswerEvent, ReadingEvent, RequestCommand, RequestEvent
from core.events.idle import (
    EmbeddingCommand,
    EmbeddingEvent,
    SavedChatsCommand,
    SavedChatsEvent,
    TitleCommand,
    TitleEvent,
)
from core.events.models import CatalogueCommand, CatalogueEvent, ClusterEvent, LoadCommand, LoadEvent
from core.events.tables import TableCommand, TableEvent
from core.events.wire import Wire, well_formed_json, well_formed_record
from core.settings import Settings, assign_all
from core.system.prepared import prepared

PROTOCOL = 1
Activity = Literal["empty", "loading", "ready", "prefilling", "decoding", "saving"]


class Shutdown(Wire, frozen=True):
    """Ends the process with status 0, like closing its stdin."""


class StandStill(Wire, frozen=True):
    """Stops idle work (`wanted`) while something is measured on this machine, or allows it again."""

    wanted: bool


class UnloadIdle(Wire, frozen=True):
    """Releases the model after `after_s` seconds without a request, from now on; 0: never.

    A `model_released` follows then, and the next request loads the model again. Not for a model on several
    machines.
    """

    after_s: float


class Hello(Wire, frozen=True):
    """The first line of a worker."""

    pid: int
    protocol: int
    version: str
    mlx: str
    mlx_lm: str
    device: str
    blas: str


class Heartbeat(Wire, frozen=True):
    """The process is alive. `stalled_s`: seconds since the last progress of the main thread.

    Heartbeats continue during shutdown; do not kill a process that is `saving`.
    """

    activity: Activity
    stalled_s: float
    memory_bytes: int
    memory_limit_bytes: int


class Failed(Wire, frozen=True):
    """A command failed; the worker continues.

    `request`: empty if the command has none. `command`: its type (`load_model`, `generate` …).
    `over_tokens`: tokens above the context limit, 0 for other failures.
    """

    request: str
    command: str
    kind: Kind
    code: str
    message: str
    hint: str = ""
    over_tokens: int = 0


ProcessCommand = StandStill | UnloadIdle | Shutdown
ProcessEvent = Hello | Heartbeat | Failed


# ---- lines


Command = (
    LoadCommand
    | RequestCommand
    | TableCommand
    | TitleCommand
    | EmbeddingCommand
    | SavedChatsCommand
    | CatalogueCommand
    | ProcessCommand
)
Event = (
    ProcessEvent
    | LoadEvent
    | ReadingEvent
    | AnswerEvent
    | RequestEvent
    | TableEvent
    | TitleEvent
    | EmbeddingEvent
    | SavedChatsEvent
    | CatalogueEvent
    | ClusterEvent
)
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# Limit of a line in either direction. A generate command contains entire documents, longer than any context.
LINE_LIMIT_BYTES = 64 * 1024 * 1024
TOO_LONG = f"A line has more than {LINE_LIMIT_BYTES:,} bytes; it was skipped."
# The beginning of a line that contains its type and request, the first fields of a command.
HEAD_BYTES = 1024
_HEAD = re.compile(rb'\{"type":"(\w+)",(?:"request":"([\w.:-]+)")?')
_SETTINGS_BYTES = 64 * 1024
# Limit of a message, which may quote megabytes of input.
_SAID_CHARACTERS = 2000


class LineHead(Struct, frozen=True):
    """The head of an invalid command; the remaining line is not decoded, however large it is."""

    type: str = ""
    request: str = ""


class _WithSettings(Struct):
    settings: msgspec.Raw = msgspec.Raw(b"")


_encoder = msgspec.json.Encoder()
_head_decoder = msgspec.json.Decoder(prepared(LineHead))
_settings_decoder = msgspec.json.Decoder(prepared(_WithSettings))
_groups_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_command_decoder: msgspec.json.Decoder[Command] = msgspec.json.Decoder(prepared(Command))
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(prepared(Event))


def encode(message: Command | Event) -> bytes:
    """One line, newline included. JSON escapes newlines inside strings, so a line is a message."""
    try:
        return _encoder.encode(message) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(well_formed_record(message)) + b"\n"


def decode_command(line: bytes) -> Command:
    """Decodes a command. Invalid text in it is replaced (`core.events.wire`).

    Raises `SettingError` with the setting and its allowed values, or `ProtocolError`.
    """
    try:
        return _command_decoder.decode(line)
    except _BAD as error:
        if (better := well_formed_json(line)) != line:
            return decode_command(better)
        _raise_for_settings(line)
        raise ProtocolError(f"This line is not a command: {_excerpt(line)} ({error}).") from None


def head_of(line: bytes) -> LineHead:
    """Type and request of a line that is not a valid command, and may be cut; empty if they are not in it."""
    try:
        return _head_decoder.decode(line)
    except _BAD:
        found = _HEAD.match(line, 0, HEAD_BYTES)
        return LineHead(*(text.decode() for text in found.groups(b""))) if found else LineHead()


def decode_event(line: bytes) -> Event:
    """Decodes an event. Raises `ProtocolError`."""
    try:
        return _event_decoder.decode(line)
    except _BAD as error:
        if (better := well_formed_json(line)) != line:
            return decode_event(better)
        raise ProtocolError(f"This line is not an event: {_excerpt(line)} ({error}).") from None


def failure(error: BaseException, *, command: str, request: str = "") -> Failed:
    """`error` as an event.

    The system's errors about a named file are reported as the user's mistake, other foreign errors as
    internal errors.
    """
    if isinstance(error, DraftlightError):
        over = error.tokens - error.limit_tokens if isinstance(error, PromptTooLongError) else 0
        return Failed(
            request, command, error.kind, error.code, _short(error.message), _short(error.hint), over
        )
    if isinstance(error, OSError) and error.filename is not None:
        return Failed(
            request,
            command,
            "request",
            "bad-path",
            _short(f"{error.filename}: {error.strerror}."),
            "Check that it exists, that you may read and write it, and that its disk has free space.",
        )
    return Failed(
        request,
        command,
        "internal",
        "internal",
        _short(f"Internal error in Draftlight: {reason_of(error)}."),
        "The details are in the worker's log.",
    )


def _raise_for_settings(line: bytes) -> None:
    """Raises `SettingError` if only the settings of a generate command are invalid."""
    try:
        raw = _settings_decoder.decode(line).settings
        # Settings have a few thousand bytes; longer input is not worth the memory.
        groups = _groups_decoder.decode(raw) if raw and len(raw) <= _SETTINGS_BYTES else {}
    except _BAD:
        return
    groups = {name: group for name, group in groups.items() if isinstance(group, dict)}
    assign_all(Settings(), [(f"{g}.{f}", value) for g, group in groups.items() for f, value in group.items()])


def _short(message: str) -> str:
    return message if len(message) <= _SAID_CHARACTERS else f"{message[:_SAID_CHARACTERS]}…"


def _excerpt(line: bytes) -> str:
    text = line[:120].decode("utf-8", "replace").strip()
    return f"“{text}…”" if len(line) > 120 else f"“{text}”"


# ---- events about the worker's process, made by its client


class WorkerExited(Struct, frozen=True):
    """The process ended, by `signal_name` if set. `log`: its last lines on stderr."""

    returncode: int
    signal_name: str
    log: tuple[str, ...]
    expected: bool


class WorkerSilent(Struct, frozen=True):
    """No event for `seconds`, not even a heartbeat."""

    seconds: float


class BadLine(Struct, frozen=True):
    """The worker wrote a line that is not an event."""

    message: str


# All that a worker's client reports.
WorkerEvent = Event | WorkerExited | WorkerSilent | BadLine
