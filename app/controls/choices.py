"""Choices, 24 high: Segment and Popup (one of several options), Switch and CheckBox (on or off)."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPalette, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QRadioButton,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)
from shiboken6 import isValid

from app.controls.buttons import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_margins
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_rect, height_of, painter_on, px, px_size, ratio_of, width_of, zoom

_HEIGHT_PX = 24
_INSET_PX = 2
_PADDING_PX = 10


class Segment(QWidget):
    """A choice of one of a few options, side by side, which share the spare width.

    `options` are pairs of value and label; the first is selected. A group of radio buttons for assistive
    technology: Tab reaches the selected one, arrows and Home/End move the selection.
    """

    value_changed = Signal(str)  # the selected option's value

    def __init__(self, options: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        if not options:
            raise ValueError("A segment needs at least one option.")
        self._options = [_Option(value, label, self) for value, label in options]
        self._value = options[0][0]
        layout = QHBoxLayout(self)
        set_margins(layout, _INSET_PX, _INSET_PX, _INSET_PX, _INSET_PX)
        layout.setSpacing(0)
        for option in self._options:
            layout.addWidget(option)
            option.toggled.connect(self._take_choice)
        self._options[0].setChecked(True)
        set_fixed_height(self, _HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._ring = FocusRing(self, 6, sources=self._options)

    @property
    def value(self) -> str:
        return self._value

    def set_value(self, value: str) -> None:
        """Selects the option of that value. Raises ValueError naming the options if it is unknown."""
        for option in self._living():
            if option.value == value:
                option.setChecked(True)
                return
        raise ValueError(f"“{value}” is not one of {', '.join(option.value for option in self._living())}.")

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        for option in self._living():
            option.setAccessibleDescription(name)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, area_of(self), 6, color("segment_track"))
        options = self._living()
        for before, option in zip([None, *options], options):
            box = design_rect(QRectF(option.geometry()))
            if option.isChecked():
                shade = QColor(0, 0, 0, 90 if theme.is_dark else 28)
                draw_box(painter, box.adjusted(-0.5, 0, 0.5, 1), 5, shade)
                draw_box(painter, box, 4.5, color("segment_on"))
            elif before is not None and not before.isChecked():
                painter.fillRect(QRectF(box.left(), box.top() + 4, 1, 12), color("hair2"))

    def _living(self) -> list[_Option]:
        """Returns the options that were not destroyed from outside."""
        return [option for option in self._options if isValid(option)]

    def _take_choice(self, checked: bool) -> None:
        self.update()
        if not checked:
            return
        value = next(option.value for option in self._living() if option.isChecked())
        if value != self._value:
            self._value = value
            self.value_changed.emit(value)


class _Option(QRadioButton):
    """Paints its label; the segment paints the ground."""

    def __init__(self, value: str, label: str, segment: QWidget) -> None:
        super().__init__(label, segment)
        self.value = value
        self._segment = segment
        self.setAccessibleName(label)
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        # Measured at the heavier weight so that nothing moves with the selection.
        width = QFontMetricsF(ui_font(12, 500)).horizontalAdvance(self.text()) + 2 * _PADDING_PX
        return px_size(QSize(int(width + 0.999), _HEIGHT_PX - 2 * _INSET_PX))

    def minimumSizeHint(self) -> QSize:
        narrow = self.sizeHint()
        return QSize(narrow.width() - px(2 * _PADDING_PX - 8), narrow.height())

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            siblings = self._segment.findChildren(_Option)
            target = siblings[0] if event.key() == Qt.Key.Key_Home else siblings[-1]
            target.setFocus(Qt.FocusReason.OtherFocusReason)
            target.setChecked(True)
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        weight = 500 if self.isChecked() else 400
        ink = color("text" if self.isEnabled() else "text3")
        draw_text(painter, area_of(self), self.text(), ui_font(12, weight), ink)


class Toggle(QCheckBox):
    """Base of on/off controls: a QCheckBox, painted by subclasses. `ring_px` is the ring's radius."""

    def __init__(self, text: str, ring_px: float, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, ring_px)

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)


_SIZE = (32, 18)
_KNOB_PX = 14


class Switch(Toggle):
    """A switch; a QCheckBox for assistive technology."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", _SIZE[1] / 2, parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return px_size(QSize(*_SIZE))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        width, height = _SIZE
        rect = QRectF(0, (height_of(self) - height) / 2, width, height)
        on, enabled = self.isChecked(), self.isEnabled()
        track = color("accent_fill" if on else "fill2")
        if on and not enabled:
            track.setAlphaF(0.45)
        frame = None if on else QColor(0, 0, 0, 20)
        draw_box(painter, rect, height / 2, track, frame)
        left = rect.left() + (width - _KNOB_PX - _INSET_PX if on else _INSET_PX)
        knob = QRectF(left, rect.top() + _INSET_PX, _KNOB_PX, _KNOB_PX)
        draw_box(painter, knob.translated(0, 0.6).adjusted(-0.4, -0.4, 0.4, 0.4), 8, QColor(0, 0, 0, 40))
        knob_color = QColor(Qt.GlobalColor.white)
        if not enabled:
            knob_color = color("fill1" if not theme.is_dark else "text3")
        draw_box(painter, knob, _KNOB_PX / 2, knob_color)


_BOX_PX = 16
_TICK_PX = 12
_BOX_GAP_PX = 9


class CheckBox(Toggle):
    """A check box; `note` is shown small at the right end."""

    def __init__(self, text: str, note: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, 6, parent)
        self._note = note
        self.setAccessibleName(text)
        self.setAccessibleDescription(note)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        text = QFontMetricsF(ui_font(13)).horizontalAdvance(self.text())
        note = QFontMetricsF(ui_font(11, tabular=True)).horizontalAdvance(self._note)
        return px_size(
            QSize(int(_BOX_PX + _BOX_GAP_PX + text + (note + _BOX_GAP_PX if note else 0) + 0.999), _HEIGHT_PX)
        )

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(_BOX_PX + _BOX_GAP_PX, _HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        on, enabled = self.isChecked(), self.isEnabled()
        box = QRectF(0, (height_of(self) - _BOX_PX) / 2, _BOX_PX, _BOX_PX)
        if on:
            draw_box(painter, box, 4, color("accent_fill" if enabled else "text3"))
            tick = icon_pixmap("check", color("on_accent"), _TICK_PX, ratio_of(self))
            painter.drawPixmap(int(box.left()) + 2, int(box.top()) + 2, tick)
        else:
            draw_box(painter, box, 4, color("control"), color("hair2"))
        ink = color("text" if enabled else "text3")
        rest = QRectF(_BOX_PX + _BOX_GAP_PX, 0, width_of(self) - _BOX_PX - _BOX_GAP_PX, height_of(self))
        draw_text(painter, rest, self.text(), ui_font(13), ink, Qt.AlignmentFlag.AlignLeft)
        small = ui_font(11, tabular=True)
        draw_text(painter, rest, self._note, small, color("text2"), Qt.AlignmentFlag.AlignRight)


_ICON_PX = 14
_LEFT_PX = 10
_RIGHT_PX = 5
_GAP_PX = 6
_ROW_PX = 26


class Popup(QComboBox):
    """A choice of one of many options. `options` are pairs of value and label; the first is selected.

    A QComboBox for the keyboard (arrows, first letters, Space opens) and assistive technology; the closed
    button and the rows of the list are painted here.
    """

    value_changed = Signal(str)  # the selected option's value

    def __init__(self, options: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        for value, label in options:
            self.addItem(label, value)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_fixed_height(self, _HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setItemDelegate(_Row(self))
        self._ring = FocusRing(self, 6)
        self.currentIndexChanged.connect(self._take_choice)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def value(self) -> str:
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
            palette.setColor(role, color("tip"))
        view.setPalette(palette)
        view.window().setPalette(palette)
        view.setFrameShape(QFrame.Shape.NoFrame)
        self.update()


class _Row(QStyledItemDelegate):
    """A row of the open list, with a tick at the selected option."""

    def __init__(self, popup: Popup) -> None:
        super().__init__(popup)
        self._popup = popup

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        text = str(index.data(Qt.ItemDataRole.DisplayRole))
        return px_size(QSize(int(QFontMetricsF(ui_font(12)).horizontalAdvance(text)) + 44, _ROW_PX))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
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
