"""Scroll bars that lie over the content, ScrollPage, a page with one, and DragScroll."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QFrame,
    QScrollArea,
    QScrollBar,
    QStyle,
    QStyleOptionSlider,
    QWidget,
)

from app.controls.shapes import draw_box
from app.theme.theme import theme
from app.theme.zoom import design_rect, height_of, painter_on, px, px_size, width_of

_WIDTH_PX = 8
_HANDLE_PX = 4


class ScrollBar(QScrollBar):
    """Replaces a scroll bar of a `QAbstractScrollArea`."""

    def __init__(self, orientation: Qt.Orientation, parent: QWidget | None = None) -> None:
        super().__init__(orientation, parent)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent, False)

    def sizeHint(self) -> QSize:
        upright = self.orientation() == Qt.Orientation.Vertical
        return px_size(QSize(_WIDTH_PX, 40) if upright else QSize(40, _WIDTH_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.maximum() <= self.minimum():
            return
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        part = QStyle.SubControl.SC_ScrollBarSlider
        on_screen = self.style().subControlRect(QStyle.ComplexControl.CC_ScrollBar, option, part, self)
        handle = design_rect(QRectF(on_screen))
        painter = painter_on(self)
        color = theme.color("text3")
        color.setAlphaF(0.85 if self.isSliderDown() or self.underMouse() else 0.45)
        if self.orientation() == Qt.Orientation.Vertical:
            thin = QRectF(
                (width_of(self) - _HANDLE_PX) / 2, handle.top() + 2, _HANDLE_PX, handle.height() - 4
            )
        else:
            thin = QRectF(
                handle.left() + 2, (height_of(self) - _HANDLE_PX) / 2, handle.width() - 4, _HANDLE_PX
            )
        draw_box(painter, thin, _HANDLE_PX / 2, color)


class OverlayScrollBar(ScrollBar):
    """Replaces the hidden scroll bar of `area`; hidden if everything fits."""

    def __init__(
        self,
        area: QAbstractScrollArea,
        orientation: Qt.Orientation = Qt.Orientation.Vertical,
    ) -> None:
        super().__init__(orientation, area)
        self._area = area
        off = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if orientation == Qt.Orientation.Vertical:
            area.setVerticalScrollBarPolicy(off)
        else:
            area.setHorizontalScrollBarPolicy(off)
        bar = self._stood_for()
        bar.rangeChanged.connect(self._follow)
        bar.valueChanged.connect(self.setValue)
        self.valueChanged.connect(lambda value: self._stood_for().setValue(value))
        area.installEventFilter(self)
        self._follow()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            self._follow()
        return False

    def _stood_for(self) -> QScrollBar:
        # Fetched each time: a stored wrapper may become invalid, and an exception in an event filter ends
        # the process.
        upright = self.orientation() == Qt.Orientation.Vertical
        return self._area.verticalScrollBar() if upright else self._area.horizontalScrollBar()

    def _follow(self) -> None:
        """Takes over the range of the replaced bar and the right or lower edge of the area."""
        bar = self._stood_for()
        self.setRange(bar.minimum(), bar.maximum())
        self.setPageStep(bar.pageStep())
        self.setSingleStep(bar.singleStep())
        self.setValue(bar.value())
        self.setVisible(bar.maximum() > bar.minimum())
        width, height, thick = self._area.width(), self._area.height(), px(_WIDTH_PX)
        if self.orientation() == Qt.Orientation.Vertical:
            self.setGeometry(width - thick - 1, 0, thick, height)
        else:
            self.setGeometry(0, height - thick - 1, width, thick)
        self.raise_()


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
        OverlayScrollBar(self)


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
