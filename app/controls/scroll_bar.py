"""Scroll bars over the content, pages and rows with one, and DragScroll, scrolling during a selection."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
    QFrame,
    QGridLayout,
    QScrollArea,
    QScrollBar,
    QSizePolicy,
    QWidget,
)

from app.theme.measures import STRETCH, row_of


def lay_bars_over(area: QAbstractScrollArea) -> None:
    """Lays the bars of `area` that are not off over its content, which keeps its width when one appears."""
    grid = QGridLayout(area)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setSpacing(0)
    grid.setRowStretch(0, 1)
    grid.setColumnStretch(0, 1)
    off = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    if area.verticalScrollBarPolicy() != off:
        area.setVerticalScrollBarPolicy(off)
        _lay_over(grid, area.verticalScrollBar, 0, 1)
    if area.horizontalScrollBarPolicy() != off:
        area.setHorizontalScrollBarPolicy(off)
        _lay_over(grid, area.horizontalScrollBar, 1, 0)


def _lay_over(grid: QGridLayout, bar: Callable[[], QScrollBar], row: int, column: int) -> None:
    # `bar` is called each time: PySide may invalidate a stored wrapper.
    grid.addWidget(bar(), row, column)
    bar().setVisible(bar().maximum() > bar().minimum())
    bar().rangeChanged.connect(lambda least, most: bar().setVisible(most > least))


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
        lay_bars_over(self)


class ScrollRow(QScrollArea):
    """Widgets in a row that scrolls sideways, also by the wheel and to the one that gets the focus."""

    def __init__(self, gap_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.page = page = QWidget()
        self.row = row_of(STRETCH, gap=gap_px, parent=page)
        self.row.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWidgetResizable(True)
        self.setWidget(page)
        for ground in (self.viewport(), page):
            ground.setAutoFillBackground(False)
        lay_bars_over(self)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._follow)

    def insert(self, at: int, widget: QWidget) -> None:
        self.row.insertWidget(at, widget)

    def clear(self) -> None:
        """Remove and delete all widgets."""
        while self.row.count() > 1 and (item := self.row.takeAt(0)):
            if widget := item.widget():
                widget.hide()
                widget.deleteLater()

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.horizontalScrollBar().event(event)  # scrolls sideways by any wheel

    def _follow(self, old: QWidget | None, now: QWidget | None) -> None:
        if now is not None and self.isAncestorOf(now):
            self.ensureWidgetVisible(now)


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
