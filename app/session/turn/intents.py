"""Intents: what the person, or the window for them, wants of the worker. Frozen records."""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from core.events import (
    CountTokens,
    EmbedTexts,
    Generate,
    Message,
    StandStill,
)
from core.events.cluster import ClusterCommand
from core.events.idle import EmbeddingCommand, RehearsalCommand, SavedChatsCommand, TitleCommand
from core.events.models import CatalogueCommand
from core.events.tables import TableCommand
from core.settings import Settings
from core.settings.cluster import Cluster


class Submit(Struct, frozen=True):
    """Answer `messages`. `request` is new and names the turn from now on, unless an answer is gone on
    with. `isolated`, `continuation` and `chat` as in `Generate`.
    """

    request: str
    messages: tuple[Message, ...]
    settings: Settings
    isolated: bool = False
    continuation: tuple[int, ...] = ()
    chat: str = ""


class Stop(Struct, frozen=True):
    """End the running answer and keep what is written."""


class Ahead(Struct, frozen=True):
    """`requests` are answered before the one that waits; with 0 its turn has come."""

    requests: int


class Serve(Struct, frozen=True):
    """Do this for the local server, whose turn it is. Its id is new."""

    command: Generate | CountTokens | EmbedTexts


class StopServed(Struct, frozen=True):
    """End the answer to `request` of the local server. Unknown ids are ignored."""

    request: str


class Count(Struct, frozen=True):
    """Count the tokens of `text`."""

    request: str
    text: str


class Restart(Struct, frozen=True):
    """Replace the worker, dead or alive, by a new one."""


class Load(Struct, frozen=True):
    """Load `model`, over the machines of `cluster` or here alone; the loaded one stays until that is done.

    A worker that has run a model over several machines is replaced first, where it is to do that again.
    """

    model: str
    cluster: Cluster | None = None


IdleCommand = (
    TableCommand | RehearsalCommand | TitleCommand | EmbeddingCommand | SavedChatsCommand | StandStill
)


class AskTables(Struct, frozen=True):
    """Something about the tables or what is done while idle; the worker does it after the running answer."""

    command: IdleCommand


class Unload(Struct, frozen=True):
    """Free the loaded model."""


class AskModels(Struct, frozen=True):
    """Something about the models on the disk, or the machines that could run one; the worker does it at
    once, beside everything else."""

    command: CatalogueCommand | ClusterCommand


class SpawnFailed(Struct, frozen=True):
    """The worker's process could not be started at all."""

    message: str
    hint: str


class Close(Struct, frozen=True):
    """The window is going away."""


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
