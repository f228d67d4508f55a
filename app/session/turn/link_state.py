"""`Link`, the window's view of the worker and its turn, and `Transition`, a step to the next state.

`turn.py` has the rules for the transitions.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from app.session.turn.effects import Effect
from core.events import ModelInfo


class Phase(Enum):
    """Phase of the worker and its one turn. `closed` is final."""

    STARTING = "starting"
    LOADING = "loading"
    NO_MODEL = "no_model"
    READY = "ready"
    READING = "reading"
    WRITING = "writing"
    STOPPING = "stopping"
    DEAD = "dead"
    CLOSED = "closed"


class Link(Struct, frozen=True):
    """The window's view of the worker.

    `model` is the model to load after each start. While another one is loading, `before` is the model to
    return to if that fails (empty if none was loaded). `request` is the request that the worker has, while
    reading, writing or stopping; its tokens are kept by the controller of its answer. `ahead` answers
    come before it. `served` requests of the local server have not ended. `loads`: the worker loads a model
    for a request.

    `load_deaths` counts the workers in a row that died while they loaded `model`.

    `released`: the model was idle and left memory; the worker loads it again for the next request.

    `quiet` is True from a silence or a stuck main thread until the worker responds again. `complaint` is the
    last failure that belonged to no request: the probable reason if the worker dies.
    """

    model: str
    phase: Phase = Phase.STARTING
    info: ModelInfo | None = None
    request: str = ""
    quiet: bool = False
    complaint: str = ""
    before: str = ""
    ahead: int = 0
    served: int = 0
    loads: bool = False
    released: bool = False
    load_deaths: int = 0

    @property
    def busy(self) -> bool:
        """Whether an answer for this window is pending or running."""
        return bool(self.request)

    @property
    def serving(self) -> bool:
        """Whether it is the turn of a request of the local server."""
        return bool(self.ahead or (self.served and self.phase is Phase.READY)) and not self.before

    @property
    def works(self) -> bool:
        """Whether the worker has an answer to generate, for the window or the server."""
        return self.busy or self.serving

    @property
    def loading(self) -> bool:
        """Whether a model is being loaded on request of a person, or in a new worker."""
        return self.phase is Phase.LOADING or bool(self.before)

    @property
    def alive(self) -> bool:
        """Whether there is a process to send commands to."""
        return self.phase not in (Phase.DEAD, Phase.CLOSED)

    @property
    def connected(self) -> bool:
        """Whether there is a worker that accepts commands."""
        return self.alive and self.phase is not Phase.STARTING


class Transition(Struct, frozen=True):
    """The result of one input."""

    link: Link
    effects: tuple[Effect, ...] = ()
