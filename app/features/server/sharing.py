"""WorkerSharing: one queue for the window's turn and the local server's requests, over the window's worker.

The turn holds a ticket from its question to its end; each server request has its own. The first in the queue
is answered. Events of a served request arrive as effects of the state machine, commands leave as intents; the
gate's state is that of the link. A dead worker is restarted for a server request, since nobody may be at the
window, unless it dies repeatedly. Everything runs on the loop; there is no task.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.features.server import strings
from app.features.server.rows import short_name
from app.session.turn import effects as fx
from app.session.turn.intents import Ahead, Restart, Serve, StopServed
from app.session.turn.link_state import Link, Phase
from core.events import Cancel, Command, CountTokens, EmbedTexts, Failed, Generate
from core.serve.queue import AnswerQueue, Answers, GateState, Ticket, WorkerGate
from core.serve.requests import ServedRequests
from core.settings import assign

KEPT_REQUESTS = 300
# After this many deaths without a loaded model it would die again.
_MOST_DEATHS = 3
_WINDOW = ""
_LOADED = frozenset({Phase.READY, Phase.WAITING, Phase.READING, Phase.WRITING, Phase.STOPPING})

Wanted = Ahead | Serve | StopServed | Restart


class WorkerSharing(QObject):
    """`take` steps the state machine, `link` returns its state, `may_learn` whether requests teach the
    tables.

    Call `follow()` after each step.
    """

    line_moved = Signal()  # the queue or the answered request changed

    def __init__(
        self,
        take: Callable[[Wanted], None],
        link: Callable[[], Link],
        may_learn: Callable[[], bool],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._take = take
        self._link = link
        self._may_learn = may_learn
        self._ticket: Ticket | None = None
        self._deaths = 0
        self._phase = Phase.STARTING
        self.gate = WorkerGate(self._send, self._revive_if_dead)
        self.queue = AnswerQueue(0, self.line_moved.emit)
        self.requests = ServedRequests(KEPT_REQUESTS, whole=True)
        self.answers = Answers(self.gate, self.queue, self.requests)
        self._revive_soon = QTimer(self, singleShot=True, interval=0)
        self._revive_soon.timeout.connect(self._revive)

    @property
    def client(self) -> str:
        """The client being answered through the server; empty for none."""
        first = next(iter(self.queue.tickets), None)
        return short_name(first.who) if first is not None else ""

    @property
    def waiting(self) -> int:
        """The number of waiting requests, the window's question included."""
        return max(0, len(self.queue.tickets) - 1)

    # ---- events

    def on_served(self, effect: fx.ServedHeard) -> None:
        """Handle an event of a served request."""
        self.gate.hear(effect.event)

    def on_served_cut_off(self, effect: fx.ServedCutOff) -> None:
        """Report the worker's exit to the client being answered."""
        self.gate.lose()

    def follow(self, link: Link) -> None:
        """Update after a change of the worker, its model or its turn."""
        before, self._phase = self._phase, link.phase
        if link.phase is Phase.DEAD and before is not Phase.DEAD:
            self._deaths += 1
        elif link.phase in _LOADED:
            self._deaths = 0
        if link.phase is Phase.LOADING and before in _LOADED:
            self._end_all("model-changed", strings.CHANGED, strings.CHANGED_HINT)
        elif link.phase is Phase.CLOSED:
            self.answers.end_all()
        info = link.info if link.phase in _LOADED else None
        self.gate.follow(self._state(link), info, released=link.released)
        self._hold_ticket(link)
        if self.queue.tickets:
            self._revive_if_dead()

    # ---- inside

    def _send(self, command: Command) -> None:
        match command:
            case Cancel(request):
                self._take(StopServed(request))
            case Generate():
                learns = command.settings.tables.learn and self._may_learn()
                settings = assign(command.settings, "tables.learn", learns)
                self._take(Serve(replace(command, settings=settings)))
            case CountTokens() | EmbedTexts():
                self._take(Serve(command))
            case _:
                raise TypeError(f"The local server does not send {type(command).__name__}.")

    def _state(self, link: Link) -> GateState:
        if link.phase in _LOADED:
            return "ready"
        if link.phase in (Phase.STARTING, Phase.LOADING):
            return "starting"
        return "starting" if self._revivable(link) else "empty"

    def _hold_ticket(self, link: Link) -> None:
        if not link.busy:
            if self._ticket is not None:
                ticket, self._ticket = self._ticket, None
                ticket.leave()
            return
        if self._ticket is None:
            self._ticket = self.queue.enter(_WINDOW, self._moved, always=True)
        self._moved()

    def _moved(self) -> None:
        """Report the new queue position of the window's question."""
        link = self._link()
        position = self._ticket.position if self._ticket is not None else None
        if link.pending is not None and position is not None and position != link.ahead:
            self._take(Ahead(position))

    def _end_all(self, code: str, message: str, hint: str) -> None:
        self.answers.end_all(lambda request: Failed(request, "generate", "request", code, message, hint))

    def _revivable(self, link: Link) -> bool:
        return link.phase is Phase.DEAD and self._deaths < _MOST_DEATHS

    def _revive_if_dead(self) -> None:
        # Not within the step that reports the death: its receivers finish first.
        if self._revivable(self._link()):
            self._revive_soon.start()

    def _revive(self) -> None:
        if self._revivable(self._link()):
            self._take(Restart())
