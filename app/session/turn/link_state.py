"""What is known of the worker and the turn that runs over it: one frozen `Link`, and the `Transition` to the
next.

`turn.py` has the rules by which the one becomes the other.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from app.session.turn.effects import Effect, Missing
from core.events import ClusterEnded, Generate, ModelInfo
from core.settings.cluster import Cluster


class Phase(Enum):
    """Where the worker and its one turn are. `waiting`: others are answered first. `closed` is final."""

    STARTING = "starting"
    LOADING = "loading"
    NO_MODEL = "no_model"
    READY = "ready"
    WAITING = "waiting"
    READING = "reading"
    WRITING = "writing"
    STOPPING = "stopping"
    DEAD = "dead"
    CLOSED = "closed"


class Link(Struct, frozen=True):
    """`model` is what to load after each start; while another is loading, `before` is the one to go
    back to if that fails (empty if none was loaded). `request` is the one that is being answered, while
    reading, writing or stopping; its tokens are `controllers.running_answer`'s. While it is waiting,
    `pending` is what will be sent, and `ahead` requests are answered before it.

    `served` is the request of the local server that is being answered, `counting` are those that wait for
    a count or vectors; the server hears of them, and the turn goes its own way.

    `cluster` are the machines that `model` is to run over, None for this one alone; `cluster_before` those of
    `before`. `trying` are those that a new worker looks at, `missing` those that it has left out. `joined`:
    this worker has run a model over several machines, which it can once. `ended` is why they ended.

    `quiet` is True from a silence or a stuck main thread until the worker moves again.
    `complaint` is the last failure that belonged to no request: the likely reason of a death.
    """

    model: str
    phase: Phase = Phase.STARTING
    info: ModelInfo | None = None
    request: str = ""
    quiet: bool = False
    complaint: str = ""
    before: str = ""
    pending: Generate | None = None
    ahead: int = 0
    served: str = ""
    counting: frozenset[str] = frozenset()
    cluster: Cluster | None = None
    cluster_before: Cluster | None = None
    trying: Cluster | None = None
    missing: tuple[Missing, ...] = ()
    joined: bool = False
    ended: ClusterEnded | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer is under way in this window."""
        return bool(self.request)

    @property
    def works(self) -> bool:
        """Whether the worker is to answer something, whoever asked."""
        return bool(self.request or self.served)

    @property
    def alive(self) -> bool:
        """Whether there is a process to talk to."""
        return self.phase not in (Phase.DEAD, Phase.CLOSED)


class Transition(Struct, frozen=True):
    """What one input leads to."""

    link: Link
    effects: tuple[Effect, ...] = ()
