"""Collector: garbage is collected on the window's thread, while there is a window.

Python collects on whichever thread happens to make the object that is one too many. The store's threads
make some, and what they collected could be a widget's: Qt objects that end on another thread stay in their
own thread's list of timers, and the next one to fire ends the process. So Python's own collecting is off
from `start` to `stop`, and a timer does it by Python's own thresholds.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 200


class Collector(QObject):
    """The window's main thread."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.collect_if_due)

    def start(self) -> None:
        """From now on nobody else collects."""
        gc.disable()
        self._timer.start()

    def stop(self) -> None:
        """Python collects by itself again."""
        self._timer.stop()
        gc.enable()

    def collect_if_due(self) -> None:
        """The oldest generation that is due, and with it all younger ones."""
        due = [held > most for held, most in zip(gc.get_count(), gc.get_threshold())]
        for generation in (2, 1, 0):
            if due[generation]:
                gc.collect(generation)
                return
