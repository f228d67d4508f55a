"""Intents: frozen records of what the user, or the window for them, wants from the worker."""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from core.events import (
    CountTokens,
    EmbedTexts,
    Generate,
    Message,
    StandStill,
    Typing,
    UnloadIdle,
)
from core.events.idle import EmbeddingCommand, SavedChatsCommand, TitleCommand
from core.events.models import CatalogueCommand
from core.events.tables import TableCommand
from core.settings import Settings


class Submit(Struct, frozen=True):
    """Answer `messages`. `request` is a new id and names the turn, unless an answer is being continued with
    it. `isolated`, `continuation`, `chat`, `continuation_texts` and `stop_repeating` as in `Generate`.
    """

    request: str
    messages: tuple[Message, ...]
    settings: Settings
    isolated: bool = False
    continuation: tuple[int, ...] = ()
    chat: str = ""
    continuation_texts: tuple[str, ...] = ()
    stop_repeating: bool = False


class Stop(Struct, frozen=True):
    """End the running answer and keep its text."""


class Ahead(Struct, frozen=True):
    """`requests` of the local server are answered before the question that waits, which is sent with 0, or
    before the next question.
    """

    requests: int


class Serve(Struct, frozen=True):
    """Send a command of the local server, whose turn it is. Its id is new."""

    command: Generate | CountTokens | EmbedTexts


class StopServed(Struct, frozen=True):
    """End the answer to `request` of the local server. Unknown ids are ignored."""

    request: str


class Count(Struct, frozen=True):
    """Count the tokens of `text`."""

    request: str
    text: str


class Restart(Struct, frozen=True):
    """Replace the worker, alive or not, by a new one."""


class Load(Struct, frozen=True):
    """Load `model`; the loaded one stays until then."""

    model: str


IdleCommand = (
    TableCommand | TitleCommand | EmbeddingCommand | SavedChatsCommand | StandStill | Typing | UnloadIdle
)


class AskTables(Struct, frozen=True):
    """A command about the tables or about idle work; the worker runs it after the running answer."""

    command: IdleCommand


class Unload(Struct, frozen=True):
    """Free the loaded model."""


class AskModels(Struct, frozen=True):
    """A command about the installed models; the worker runs it at once, during answers too."""

    command: CatalogueCommand


class SpawnFailed(Struct, frozen=True):
    """The worker's process could not be started."""

    message: str
    hint: str


class Close(Struct, frozen=True):
    """The window is closing."""


Intent = (
    Submit
    | Stop
    | Ahead
    | Serve
    | StopServed
    | Count
    | AskTables
    | AskModels
    | Restart
    | Load
    | Unload
    | SpawnFailed
    | Close
)
INTENTS: tuple[type, ...] = get_args(Intent)
