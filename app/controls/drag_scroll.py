"""DragScroll: scrolls while text is selected with the pointer outside of the view."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, QTimer
from PySide6.QtWidgets import QAbstractScrollArea

_EVERY_MS = 30
_FASTEST_PX = 60


class DragScroll(QObject):
    """For one scroll area. Call `drag` for each move of a selecting pointer; `moved` is called after each
    step.
    """

    def __init__(self, area: QAbstractScrollArea, moved: Callable[[], object]) -> None:
        super().__init__(area)
        self._area = area
        self._moved = moved
        self._at = QPoint()
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self._step)

    def drag(self, at: QPoint) -> None:
        """Handle a move of the selecting pointer to the global point `at`."""
        self._at = at
        if self._beyond():
            self._timer.start()
        else:
            self._timer.stop()

    def stop(self) -> None:
        """Handle the release of the button."""
        self._timer.stop()

    def _beyond(self) -> int:
        """Distance of the pointer above (negative) or below the view, in pixels."""
        view = self._area.viewport()
        y = view.mapFromGlobal(self._at).y()
        return min(y, 0) + max(y - view.height(), 0)

    def _step(self) -> None:
        beyond = self._beyond()
        if not beyond:
            self._timer.stop()
            return
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.value() + max(-_FASTEST_PX, min(_FASTEST_PX, beyond)))
        self._moved()
