"""Messages as lines, and failures as messages."""

from __future__ import annotations

from typing import Union

import msgspec

from core.errors import DraftlightError, PromptTooLongError, ProtocolError
from core.events.answer import Finished, Gauges, Token
from core.events.catalogue import (
    CancelDownload,
    DownloadModel,
    DownloadProgress,
    ImportModel,
    ListModels,
    LookUpModels,
    ModelImported,
    ModelList,
    ModelRemoved,
    ModelsFound,
    PauseDownload,
    RemoveModel,
)
from core.events.models import LoadModel, LoadProgress, ModelLoaded, ModelUnloaded, UnloadModel
from core.events.process import Failed, Heartbeat, Hello, Shutdown, StandStill
from core.events.reading import PrefillProgress, ReadingMap
from core.events.rehearsal import Rehearse, Rehearsing, Typing
from core.events.request import Cancel, CountTokens, Generate, TokenCount
from core.events.tables import (
    ExportTable,
    ImportTable,
    ListTables,
    LoadTables,
    ResetTable,
    SaveTables,
    TableDone,
    TableList,
    TableStatus,
)
from core.settings import Settings, assign_all
from core.text import well_formed_json, well_formed_record

Command = Union[
    LoadModel,
    UnloadModel,
    Generate,
    Cancel,
    CountTokens,
    ListTables,
    SaveTables,
    LoadTables,
    ResetTable,
    ExportTable,
    ImportTable,
    Rehearse,
    Typing,
    ListModels,
    LookUpModels,
    DownloadModel,
    PauseDownload,
    CancelDownload,
    ImportModel,
    RemoveModel,
    StandStill,
    Shutdown,
]
Event = Union[
    Hello,
    LoadProgress,
    ModelLoaded,
    ModelUnloaded,
    PrefillProgress,
    ReadingMap,
    Token,
    Gauges,
    Finished,
    TokenCount,
    TableStatus,
    TableList,
    TableDone,
    Rehearsing,
    ModelList,
    ModelsFound,
    DownloadProgress,
    ModelImported,
    ModelRemoved,
    Failed,
    Heartbeat,
]
_encoder = msgspec.json.Encoder()
_command_decoder: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(message: Command | Event) -> bytes:
    """One line, newline included. JSON escapes newlines inside strings, so a line is a message."""
    try:
        return _encoder.encode(message) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(well_formed_record(message)) + b"\n"


def decode_command(line: bytes) -> Command:
    """A command from one line. What is no text in it is replaced: see `core.text`.

    Raises `SettingError` naming the setting and what it takes, or `ProtocolError`.
    """
    try:
        return _command_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if (better := well_formed_json(line)) != line:
            return decode_command(better)
        _raise_for_settings(line)
        raise ProtocolError(f"This line is not a command: {_excerpt(line)} ({error}).") from None


def decode_event(line: bytes) -> Event:
    """An event from one line. Raises `ProtocolError`."""
    try:
        return _event_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if (better := well_formed_json(line)) != line:
            return decode_event(better)
        raise ProtocolError(f"This line is not an event: {_excerpt(line)} ({error}).") from None


def failure(error: BaseException, *, command: str, request: str = "") -> Failed:
    """`error` as an event. Errors that are not ours become internal ones with their type named."""
    if isinstance(error, DraftlightError):
        over = error.tokens - error.limit_tokens if isinstance(error, PromptTooLongError) else 0
        return Failed(request, command, error.kind, error.code, error.message, error.hint, over)
    return Failed(
        request,
        command,
        "internal",
        "internal",
        f"Draftlight hit an error of its own: {type(error).__name__}: {error}.",
        "The details are in the worker's log.",
    )


def _raise_for_settings(line: bytes) -> None:
    """If only the settings of a generate command are wrong, say which and what they take."""
    try:
        groups = msgspec.json.decode(line)["settings"]
        pairs = [(f"{g}.{f}", value) for g, group in groups.items() for f, value in group.items()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError, KeyError, TypeError):
        return
    assign_all(Settings(), pairs)


def _excerpt(line: bytes) -> str:
    text = line[:120].decode("utf-8", "replace").strip()
    return f"“{text}…”" if len(line) > 120 else f"“{text}”"
