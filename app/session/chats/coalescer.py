"""The tokens of an answer on their way to the window: batches for painting, and repetition. Pure.

`Coalescer` releases tokens in whole steps, at most thirty times a second. A step ends with its bonus or
normal token. Accepted tokens wait for it, so that no run appears in halves. `drain()` returns all waiting
tokens. The caller passes the time in seconds; there is no timer here: `due_in_s()` says when to call
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


LONGEST_PERIOD = 96
LEAST_TOKENS = 240
LEAST_TIMES = 4


class Repetition:
    """Detects an answer that repeats itself without end. `add()` takes its token ids in order.

    A small model at temperature 0 can enter a loop that only the token limit ends. The rule avoids false
    alarms rather than reacting early: the same stretch of at most 96 tokens, at least four times and over 240
    tokens, without a differing token. Tables, lists and code repeat their form, but not every token. A token
    costs one comparison per period.
    """

    def __init__(self) -> None:
        self._recent: list[int] = []
        # For each period: the number of consecutive tokens equal to the token one period before.
        self._same = [0] * (LONGEST_PERIOD + 1)

    def add(self, token_id: int) -> bool:
        """Whether the answer ends in a loop after this token."""
        recent, same = self._recent, self._same
        looping = False
        for period in range(1, min(LONGEST_PERIOD, len(recent)) + 1):
            if recent[-period] == token_id:
                same[period] += 1
                if same[period] + period >= max(LEAST_TOKENS, LEAST_TIMES * period):
                    looping = True
            else:
                same[period] = 0
        recent.append(token_id)
        if len(recent) > 2 * LONGEST_PERIOD:
            del recent[:LONGEST_PERIOD]
        return looping
