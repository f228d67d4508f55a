"""AnswerQueue: who is answered and who waits, first come, first served.

There is one worker, so one answer at a time. The window's chat and the server take tickets from the same
queue; the first ticket holds the worker until it is given back. Pure: no tasks, no clock; listeners are
called on the loop, from within the call that moved the line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil

from core.errors import RequestError

_RECENT = 16
_UNKNOWN_S = 10.0
_SOON_S = 1.0
_MOST_WAIT_S = 3600


class QueueFullError(RequestError):
    """More would wait than may."""

    code = "queue-full"
    # When there is room again, as `Pace` predicts it; 0 if nobody predicts it.
    retry_after_s = 0

    def __init__(self, length: int) -> None:
        super().__init__(
            f"{length} requests wait already, and no more may.", "Try again in a moment, or allow more."
        )


class Ticket:
    """A place in the line. `who` is for showing. `moved` hears that `position` changed."""

    def __init__(self, queue: AnswerQueue, who: str, moved: Callable[[], None]) -> None:
        self.who = who
        self._queue = queue
        self._moved = moved

    @property
    def position(self) -> int | None:
        """How many are before it: 0 is its turn; None once it was given back."""
        return self._queue.position(self)

    def leave(self) -> None:
        """Give it back. Safe to call twice."""
        self._queue.leave(self)

    def tell(self) -> None:
        """Its position changed."""
        self._moved()


class Pace:
    """Predicts when a full queue has room, from the durations of recent answers. Times are in seconds."""

    def __init__(self) -> None:
        self._durations_s: deque[float] = deque(maxlen=_RECENT)
        self._began_s: float | None = None
        self._promised_s = 0.0

    def begin(self, now_s: float) -> None:
        """The worker takes up an answer."""
        self._began_s = now_s

    def end(self, now_s: float) -> None:
        """That answer has ended."""
        if self._began_s is not None:
            self._durations_s.append(now_s - self._began_s)
            self._began_s = None

    def room_in_s(self, now_s: float) -> int:
        """When the next place is free. Each call promises another place: who is refused later comes later."""
        durations = self._durations_s
        mean_s = sum(durations) / len(durations) if durations else _UNKNOWN_S
        elapsed_s = now_s - self._began_s if self._began_s is not None else 0.0
        free_s = now_s + max(mean_s - elapsed_s, _SOON_S)
        if self._promised_s > now_s:
            free_s = max(free_s, self._promised_s + mean_s)
        self._promised_s = free_s
        return min(_MOST_WAIT_S, max(1, ceil(free_s - now_s)))


class AnswerQueue:
    """`length`: how many may wait, beside the one that is answered. `changed` hears of every move."""

    def __init__(self, length: int, changed: Callable[[], None] = lambda: None) -> None:
        self.length = length
        self._line: list[Ticket] = []
        self._changed = changed

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        """All, in order; the first is being answered."""
        return tuple(self._line)

    def enter(self, who: str, moved: Callable[[], None], *, always: bool = False) -> Ticket:
        """A ticket at the end. It may be its turn at once: `moved` is not called for that.

        Raises `QueueFullError`, unless the ticket is to be given `always`: a person at the window waits
        however many wait.
        """
        if not always and len(self._line) > self.length:
            raise QueueFullError(self.length)
        ticket = Ticket(self, who, moved)
        self._line.append(ticket)
        self._changed()
        return ticket

    def position(self, ticket: Ticket) -> int | None:
        """See `Ticket.position`."""
        return next((place for place, one in enumerate(self._line) if one is ticket), None)

    def leave(self, ticket: Ticket) -> None:
        """See `Ticket.leave`."""
        place = self.position(ticket)
        if place is None:
            return
        del self._line[place]
        for one in self._line[place:]:
            one.tell()
        self._changed()
