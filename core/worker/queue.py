"""CommandQueue: the worker's commands in the order in which they are carried out. Any thread.

Answers have turns: one `Generate` after another, in the order of their arrival. All other commands keep their
order too, but do not wait for the turns that wait themselves. `take_turn` reserves a turn: after it the queue
is held until the answer of the same request arrives, or its `cancel`.

A turn receives the number of answers before it whenever that changes, by `Queued`, and 0 when it comes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from core.events import Cancel, Command, Generate, Queued, ReadAhead, TakeTurn


class Entry(Struct):
    """A command and when it arrived. `waited`: it is a turn, and others were before it."""

    command: Command
    arrived_s: float
    number: int
    waited: bool = False

    @property
    def request(self) -> str:
        """The command's request; empty if it has none."""
        return getattr(self.command, "request", "")


class CommandQueue:
    """`say` gets each `Queued`, in order, on the thread that changed the queue; it must not wait for it."""

    def __init__(self, say: Callable[[Queued], None]) -> None:
        self._say = say
        # Reentrant, because a pipe that closes while `say` writes puts a last command.
        self._changed = threading.Condition(threading.RLock())
        self._number = 0
        self._others: deque[Entry] = deque()
        self._turns: deque[Entry] = deque()
        self._running: Entry | None = None  # the turn that is carried out
        self._holder = ""  # the request whose turn it is, until its answer arrives
        # Requests that wait or run, and whether each is cancelled.
        self._cancelled: dict[str, bool] = {}

    def put(self, command: Command, arrived_s: float) -> None:
        """Add a command."""
        with self._changed:
            self._number += 1
            entry = Entry(command, arrived_s, self._number)
            if not isinstance(command, Generate | TakeTurn):
                self._others.append(entry)
            elif entry.request and entry.request == self._holder:
                self._turns.appendleft(entry)
            else:
                self._turns.append(entry)
                self._tell(len(self._turns) - 1)
            if entry.request and not isinstance(command, Cancel):
                self._cancelled.setdefault(entry.request, False)
            self._changed.notify_all()

    def next(self, timeout_s: float | None) -> Entry | None:
        """The next command; None if none has come within `timeout_s` seconds. One thread calls this.

        Call `done` before the next one.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._next() is not None, timeout_s):
                return None
            line = self._next()
            assert line is not None
            entry = line.popleft()
            if line is self._turns:
                self._running, self._holder = entry, ""
                self._say(Queued(entry.request, 0))
            return entry

    def _next(self) -> deque[Entry] | None:
        turn = self._turns[0] if self._turns else None
        if turn is not None and self._holder not in ("", turn.request):
            turn = None
        if self._others and (turn is None or turn.waited or self._others[0].number < turn.number):
            return self._others
        return self._turns if turn is not None else None

    def hold(self, request: str) -> bool:
        """Reserve the turn of the running `take_turn` for its answer; False if it was cancelled."""
        with self._changed:
            if self._cancelled.get(request):
                return False
            self._holder = request
            return True

    def done(self, entry: Entry) -> bool:
        """The command was carried out. Returns whether it was cancelled meanwhile."""
        with self._changed:
            # A queued `Cancel` is not of this request; one of the same id may have come after it.
            over = "" if isinstance(entry.command, Cancel) else entry.request
            was = self._cancelled.get(over, False)
            if not any(turn.request == over for turn in self._turns):  # as the answer of a `take_turn` does
                self._cancelled.pop(over, None)
            if self._running is entry:
                self._running = None
                if not self._holder:
                    self._tell(1)
            return was

    def cancel(self, request: str) -> Entry | bool:
        """Cancel a request: returns the turn that waited and was removed, or whether the request is known.

        A running command sees it by `is_cancelled`.
        """
        with self._changed:
            at_work = self._running is not None and self._running.request == request
            place = next((at for at, turn in enumerate(self._turns) if turn.request == request), None)
            is_held, self._holder = self._holder == request, "" if self._holder == request else self._holder
            entry = None
            if place is not None and not at_work:
                entry = self._turns[place]
                del self._turns[place]
                self._cancelled.pop(request, None)
            elif request in self._cancelled:
                self._cancelled[request] = True
            elif not is_held:
                return False
            if entry is not None or is_held:
                self._tell(place or 0)
                self._changed.notify_all()
            return entry or True

    def is_cancelled(self, request: str) -> bool:
        """Whether a request that waits or runs is cancelled."""
        return self._cancelled.get(request, False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, and no turn is reserved."""
        return not (self._others or self._turns or self._holder)

    @property
    def is_urgent(self) -> bool:
        """Whether a waiting entry interrupts a title that is being written: any but `read_ahead`."""
        return any(not isinstance(each.command, ReadAhead) for each in (*self._turns, *self._others))

    @property
    def is_held(self) -> bool:
        """Whether a turn is reserved."""
        return bool(self._holder)

    def _tell(self, first: int) -> None:
        """Report the places of the turns from the index `first` on."""
        first_turn = self._turns[0].request if self._turns else ""
        at_work = int(self._running is not None or self._holder not in ("", first_turn))
        for place, turn in enumerate(self._turns):
            ahead = place + at_work
            if place >= first and ahead:
                turn.waited = True
                self._say(Queued(turn.request, ahead))
