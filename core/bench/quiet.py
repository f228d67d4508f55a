"""Quiet: measurements that were interrupted are made again; an end that is asked for is orderly.

Whoever runs a sweep beside other work stops its whole process while that work goes on (SIGSTOP) and
lets it go on afterwards (SIGCONT). A run that was stopped so took longer than it does: it is
repeated. SIGTERM ends the process through its `finally` clauses, so that no scratch folder stays.
Main thread only.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

# A forward that is under way ends before the process does.
_GRACE_S = 10.0
ENDED = 143  # what shells call an end by SIGTERM


class Quiet:
    """Takes the signals when made and gives them back on `close()`."""

    def __init__(self) -> None:
        self._spoilt = False
        self._before = {number: signal.getsignal(number) for number in (signal.SIGCONT, signal.SIGTERM)}
        signal.signal(signal.SIGCONT, self._went_on)
        signal.signal(signal.SIGTERM, _end)

    def close(self) -> None:
        """From now on the signals are someone else's."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def undisturbed(self, measure: Callable[[], T]) -> T:
        """What `measure` gives when nothing interrupts it."""
        while True:
            self._spoilt = False
            found = measure()
            if not self._spoilt:
                return found

    def _went_on(self, number: int, frame: FrameType | None) -> None:
        self._spoilt = True


def end_with_parent() -> None:
    """End this process when its stdin closes, because whoever started it is gone."""
    threading.Thread(target=_watch, name="parent", daemon=True).start()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(ENDED)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(ENDED)
