"""Popup: a choice of one of many options, 24 high.

A QComboBox for the keyboard (arrows, first letters, Space opens) and assistive technology; the closed button
and the rows of the list are painted here.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPalette, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_rect, height_of, painter_on, px_size, ratio_of, width_of, zoom

_HEIGHT_PX = 24
_ICON_PX = 14
_LEFT_PX = 10
_RIGHT_PX = 5
_GAP_PX = 6
_ROW_PX = 26


class Popup(QComboBox):
    """`options` are pairs of value and label; the first is selected."""

    value_changed = Signal(str)  # the selected option's value

    def __init__(
        self, theme: Theme, options: Sequence[tuple[str, str]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        for value, label in options:
            self.addItem(label, value)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_fixed_height(self, _HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setItemDelegate(_Row(theme, self))
        self._ring = FocusRing(self, theme, 6)
        self.currentIndexChanged.connect(self._take_choice)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def value(self) -> str:
        """The selected option's value."""
        return str(self.currentData())

    def set_value(self, value: str) -> None:
        """Selects the option of that value. Raises ValueError naming the options if it is unknown."""
        index = self.findData(value)
        if index < 0:
            known = ", ".join(str(self.itemData(row)) for row in range(self.count()))
            raise ValueError(f"“{value}” is not one of {known}.")
        self.setCurrentIndex(index)

    def show_options(self, options: Sequence[tuple[str, str]], value: str) -> None:
        """Replaces the options and selects that of `value`, without a signal."""
        self.blockSignals(True)
        self.clear()
        for each, label in options:
            self.addItem(label, each)
        self.set_value(value)
        self.blockSignals(False)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(ui_font(12))
        widest = max(
            (metrics.horizontalAdvance(self.itemText(row)) for row in range(self.count())), default=0
        )
        return px_size(QSize(int(widest + _LEFT_PX + _GAP_PX + _ICON_PX + _RIGHT_PX + 0.999), _HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(64, _HEIGHT_PX))

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        frame = color("accent_mid" if self._ring.shown else "control_border")
        draw_box(painter, area_of(self), 6, color("control"), frame)
        ink = color("text" if self.isEnabled() else "text3")
        icon_left = width_of(self) - _RIGHT_PX - _ICON_PX
        text_box = QRectF(_LEFT_PX, 0, icon_left - _GAP_PX - _LEFT_PX, height_of(self))
        draw_text(painter, text_box, self.currentText(), ui_font(12), ink, Qt.AlignmentFlag.AlignLeft)
        arrows = icon_pixmap("updown", color("text2"), _ICON_PX, ratio_of(self))
        painter.drawPixmap(QPointF(icon_left, (height_of(self) - _ICON_PX) // 2), arrows)

    def _take_choice(self, index: int) -> None:
        if index >= 0:
            self.value_changed.emit(self.value)

    def _restyle(self) -> None:
        view = self.view()
        palette = QPalette(view.palette())
        for role in (QPalette.ColorRole.Base, QPalette.ColorRole.Window):
            palette.setColor(role, self._theme.color("tip"))
        view.setPalette(palette)
        view.window().setPalette(palette)
        view.setFrameShape(QFrame.Shape.NoFrame)
        self.update()


class _Row(QStyledItemDelegate):
    """A row of the open list, with a tick at the selected option."""

    def __init__(self, theme: Theme, popup: Popup) -> None:
        super().__init__(popup)
        self._theme = theme
        self._popup = popup

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        text = str(index.data(Qt.ItemDataRole.DisplayRole))
        return px_size(QSize(int(QFontMetricsF(ui_font(12)).horizontalAdvance(text)) + 44, _ROW_PX))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        color = self._theme.color
        box = design_rect(QRectF(option.rect))
        pointed = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.scale(zoom(), zoom())
        painter.fillRect(box, color("tip"))
        if pointed:
            draw_box(painter, box.adjusted(3, 1, -3, -1), 5, color("accent_fill"))
        ink = color("on_accent" if pointed else "text")
        if index.row() == self._popup.currentIndex():
            tick = icon_pixmap("check", ink, 12, ratio_of(self._popup))
            painter.drawPixmap(QPointF(int(box.left()) + 9, int(box.center().y()) - 6), tick)
        text = str(index.data(Qt.ItemDataRole.DisplayRole))
        draw_text(painter, box.adjusted(28, 0, -10, 0), text, ui_font(12), ink, Qt.AlignmentFlag.AlignLeft)
        painter.restore()
