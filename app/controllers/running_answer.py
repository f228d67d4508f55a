"""RunningAnswer: the one owner of a running answer's tokens: counts them, misses none, and gives them on.

One request is answered at a time. Whatever is heard of it goes to the listener that has asked for it:
the open chat's `AnswerController`, or the race.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.session.turn import effects as fx
from core.events import Failed, Finished, Gauges, PrefillProgress, ReadingMap, Token


class AnswerListener(Protocol):
    """Whoever asked. `begin()` comes first; `finish()`, `fail()` or `cut_off()` last, with the count of
    tokens where that decides what becomes of the question."""

    def begin(self) -> None: ...

    def read(self, progress: PrefillProgress) -> None: ...

    def choose(self, reading: ReadingMap) -> None: ...

    def write(self, token: Token) -> None: ...

    def measure(self, gauges: Gauges) -> None: ...

    def finish(self, finished: Finished) -> None: ...

    def fail(self, failed: Failed, tokens: int) -> None: ...

    def cut_off(self, tokens: int, *, closing: bool) -> None: ...


class RunningAnswer:
    """`listener_of` says who asked a request. `tell_mistake` hears of a token out of order."""

    def __init__(
        self, listener_of: Callable[[str], AnswerListener], tell_mistake: Callable[[fx.WorkerMistake], None]
    ) -> None:
        self._listener_of = listener_of
        self._tell_mistake = tell_mistake
        self._tokens = 0
        self._lost: int | None = None

    def on_begun(self, effect: fx.AnswerBegun) -> None:
        """The request is on its way."""
        self._tokens, self._lost = 0, None
        self._listener_of(effect.request).begin()

    def on_reading(self, effect: fx.ReadingHeard) -> None:
        """The prompt is being read."""
        self._listener_of(effect.progress.request).read(effect.progress)

    def on_map(self, effect: fx.MapHeard) -> None:
        """What of it is read is chosen."""
        self._listener_of(effect.map.request).choose(effect.map)

    def on_token(self, effect: fx.TokenHeard) -> None:
        """One more; one that is not the next is dropped, and told."""
        token = effect.token
        if token.position != self._tokens:
            where = f"Token has position {token.position} where {self._tokens} comes next."
            self._tell_mistake(fx.WorkerMistake(where))
            return
        self._tokens += 1
        self._listener_of(token.request).write(token)

    def on_gauges(self, effect: fx.GaugesHeard) -> None:
        """Live figures."""
        self._listener_of(effect.gauges.request).measure(effect.gauges)

    def on_finished(self, effect: fx.AnswerFinished) -> None:
        """It ended as the worker meant it to."""
        self._listener_of(effect.finished.request).finish(effect.finished)

    def on_failed(self, effect: fx.AnswerFailed) -> None:
        """The worker refused or gave up on it."""
        self._listener_of(effect.failed.request).fail(effect.failed, self._tokens)

    def on_cut_off(self, effect: fx.AnswerCutOff) -> None:
        """The worker is gone."""
        self._lost = self._tokens
        self._listener_of(effect.request).cut_off(self._tokens, closing=effect.closing)

    def take_lost(self) -> int | None:
        """The tokens of the answer that was cut off last, once; None if none was."""
        lost, self._lost = self._lost, None
        return lost
