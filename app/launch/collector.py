"""Collector: garbage is collected on the window's thread, as long as there is an application.

Python collects on whichever thread happens to make the object that is one too many. The store's threads
make some, and what they collected could be a widget's: Qt objects that end on another thread stay in their
own thread's list of timers, and the next one to fire ends the process. So Python's own collecting is off
from the first moment of the application, before any of its threads, and a timer does it by Python's own
thresholds.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimerEvent

_EVERY_MS = 200


class Collector(QObject):
    """The application's main thread. From its making on nobody else collects."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self.startTimer(_EVERY_MS)

    def timerEvent(self, event: QTimerEvent) -> None:
        collect_if_due()


def collect_if_due() -> None:
    """The oldest generation that is due, and with it all younger ones."""
    due = [held > most for held, most in zip(gc.get_count(), gc.get_threshold())]
    for generation in (2, 1, 0):
        if due[generation]:
            gc.collect(generation)
            return
