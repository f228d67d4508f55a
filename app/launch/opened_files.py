"""Files that the desktop asks the app to open: double-clicked in Finder, dropped on the Dock icon.

macOS names them one by one, possibly before there is a window. They are kept until somebody takes
them, and those that come together are handed over together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

Taker = Callable[[list[Path]], object]


class OpenedFiles(QObject):
    """Files go to whoever called `hand_to()` last."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: list[Path] = []
        self._taker: Taker | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._deliver)

    def add(self, path: Path) -> None:
        """One more."""
        self._waiting.append(path)
        if self._taker:
            self._timer.start()

    def hand_to(self, taker: Taker | None) -> None:
        """From now on, and what waits already, as soon as the loop runs. None: keep them."""
        self._taker = taker
        if taker is None:
            self._timer.stop()
        elif self._waiting:
            self._timer.start()

    def _deliver(self) -> None:
        if self._taker and self._waiting:
            paths, self._waiting = self._waiting, []
            self._taker(paths)
