"""Batches the tokens of an answer for painting. Pure.

`Coalescer` releases tokens in whole steps, at most thirty times a second. A step ends with its bonus or
normal token. Accepted tokens wait for it, so that no run appears in halves. `drain()` returns all waiting
tokens. The caller passes the time in seconds and has the timer: `due_in_s()` says when to call
`take()`.
"""

from __future__ import annotations

from collections.abc import Callable

from core.events import Token

# By the visual design, repaint at most 30 times a second.
INTERVAL_S = 1 / 30


class Coalescer:
    """Serves one answer at a time; `drain()` resets it for the next."""

    def __init__(self, clock: Callable[[], float], interval_s: float = INTERVAL_S) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._waiting: list[Token] = []
        self._whole = 0
        self._taken_at_s: float | None = None

    def add(self, token: Token) -> None:
        """Hold `token` until `take()`."""
        self._waiting.append(token)
        if token.origin != "accepted":
            self._whole = len(self._waiting)

    def due_in_s(self) -> float | None:
        """Returns the seconds until `take()` returns tokens; None if no whole step waits."""
        if not self._whole:
            return None
        if self._taken_at_s is None:
            return 0.0
        return max(0.0, self._taken_at_s + self._interval_s - self._clock())

    def take(self) -> tuple[Token, ...]:
        """Returns the waiting whole steps if they are due, else nothing."""
        due_in_s = self.due_in_s()
        if due_in_s is None or due_in_s > 0:
            return ()
        taken = tuple(self._waiting[: self._whole])
        del self._waiting[: self._whole]
        self._whole = 0
        self._taken_at_s = self._clock()
        return taken

    def drain(self) -> tuple[Token, ...]:
        taken = tuple(self._waiting)
        self._waiting.clear()
        self._whole = 0
        self._taken_at_s = None
        return taken
