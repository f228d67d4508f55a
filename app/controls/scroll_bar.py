"""Scroll bars: a thin rounded handle on no track, 8 wide. Everything else is QScrollBar's.

`ScrollBar` takes its own room; `OverlayScrollBar` lies over the contents, so that nothing moves
when it comes and goes.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QScrollBar, QStyle, QStyleOptionSlider, QWidget

from app.controls.shapes import draw_box
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px, px_size, width_of

_WIDTH_PX = 8
_HANDLE_PX = 4


class ScrollBar(QScrollBar):
    """For `QAbstractScrollArea.setVerticalScrollBar` and its horizontal sister."""

    def __init__(self, theme: Theme, orientation: Qt.Orientation, parent: QWidget | None = None) -> None:
        super().__init__(orientation, parent)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent, False)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        upright = self.orientation() == Qt.Orientation.Vertical
        return px_size(QSize(_WIDTH_PX, 40) if upright else QSize(40, _WIDTH_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.maximum() <= self.minimum():
            return
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        part = QStyle.SubControl.SC_ScrollBarSlider
        handle = QRectF(self.style().subControlRect(QStyle.ComplexControl.CC_ScrollBar, option, part, self))
        painter = painter_on(self)
        color = self._theme.color("text3")
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
    """Stands for the vertical bar of `area`, which is switched off; hidden when all fits."""

    def __init__(self, theme: Theme, area: QAbstractScrollArea) -> None:
        super().__init__(theme, Qt.Orientation.Vertical, area)
        self._area = area
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        bar = area.verticalScrollBar()
        bar.rangeChanged.connect(self._follow)
        bar.valueChanged.connect(self.setValue)
        self.valueChanged.connect(lambda value: area.verticalScrollBar().setValue(value))
        area.installEventFilter(self)
        self._follow()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            self._follow()
        return False

    def _follow(self) -> None:
        """Take the range of the bar that is stood for, and the right edge of the area."""
        # Asked for each time: a wrapper that is held may become invalid, and an error in an event
        # filter ends the process.
        bar = self._area.verticalScrollBar()
        self.setRange(bar.minimum(), bar.maximum())
        self.setPageStep(bar.pageStep())
        self.setSingleStep(bar.singleStep())
        self.setValue(bar.value())
        self.setVisible(bar.maximum() > bar.minimum())
        self.setGeometry(self._area.width() - px(_WIDTH_PX) - 1, 0, px(_WIDTH_PX), self._area.height())
        self.raise_()
