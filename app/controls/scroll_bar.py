"""ScrollPage, a page that scrolls, and DragScroll, scrolling while text is selected."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QFrame,
    QScrollArea,
    QWidget,
)


class ScrollPage(QScrollArea):
    """Shows `page` in the full width, with a transparent ground. Not in the Tab order."""

    def __init__(self, page: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(page)
        # Afterwards: setWidget() turns the fill on.
        self.viewport().setAutoFillBackground(False)
        page.setAutoFillBackground(False)


_EVERY_MS = 30
_FASTEST_PX = 60


class DragScroll(QObject):
    """Scrolls `area` while text is selected with the pointer outside of it. Call `drag` for each move of the
    pointer; `moved` is called after each step.
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
