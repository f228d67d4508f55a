"""Choices that the style sheet paints: Segment and Popup (one of several options), CheckBox and Switch.

Keyboard, focus and accessibility are those of Qt's classes: Space changes a choice, and Return presses the
default button of a dialog. A text that is too long ends in an ellipsis, and the tooltip has all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QWidget,
)

from app.controls.shapes import show_tip
from app.theme.measures import set_margins
from app.theme.zoom import px


class Segment(QWidget):
    """A choice of one of a few options, side by side, which share the spare width.

    `options` are pairs of value and label; the first is selected. Exclusive buttons: Tab reaches the selected
    one, arrows move the selection, and assistive technology reads radio buttons.
    """

    value_changed = Signal(str)  # the selected option's value

    def __init__(self, options: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        if not options:
            raise ValueError("A segment needs at least one option.")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._options = {value: QPushButton(label) for value, label in options}
        layout = QHBoxLayout(self)
        set_margins(layout, 2, 2, 2, 2)
        layout.setSpacing(0)
        for option in self._options.values():
            option.setProperty("kind", "segment")
            option.setAccessibleName(option.text())
            option.setCheckable(True)
            option.setAutoExclusive(True)
            option.setAutoDefault(False)
            option.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a ring after a click would mean nothing
            layout.addWidget(option)
        self._options[options[0][0]].setChecked(True)
        for value, option in self._options.items():
            option.toggled.connect(lambda on, value=value: self.value_changed.emit(value) if on else None)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    @property
    def value(self) -> str:
        return next(value for value, option in self._options.items() if option.isChecked())

    def set_value(self, value: str) -> None:
        """Selects the option of that value. Raises ValueError naming the options if it is unknown."""
        if value not in self._options:
            raise ValueError(f"“{value}” is not one of {', '.join(self._options)}.")
        self._options[value].setChecked(True)

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        for option in self._options.values():
            option.setAccessibleDescription(name)


class CheckBox(QCheckBox):
    """A check box whose text is shown as it is: “&” does not mark a mnemonic. `whole`: the text."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text.replace("&", "&&"), parent)
        self.whole = text
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def minimumSizeHint(self) -> QSize:
        return QSize(px(64), super().minimumSizeHint().height())

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        super().initStyleOption(option)
        place = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self)
        option.text = _elided(self, self.whole, place.width()).replace("&", "&&")

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            option = QStyleOptionButton()
            self.initStyleOption(option)
            _tip(event, self, self.whole, option.text.replace("&&", "&"))
            return True
        return super().event(event)


class Switch(QCheckBox):
    """A check box without a text that looks like a switch."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)


class Popup(QComboBox):
    """A choice of one of many options. `options` are pairs of value and label; the first is selected."""

    value_changed = Signal(str)  # the selected option's value

    def __init__(self, options: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        for value, label in options:
            self.addItem(label, value)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setItemDelegate(QStyledItemDelegate(self))  # Qt's own for popups ignores the style sheet
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.currentIndexChanged.connect(self._take_choice)

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

    def minimumSizeHint(self) -> QSize:
        return QSize(px(64), super().minimumSizeHint().height())

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """Shortens a text that is too long with an ellipsis; Qt would cut it."""
        super().initStyleOption(option)
        option.currentText = _elided(self, option.currentText, self.width() - px(36))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            _tip(event, self, self.currentText(), _elided(self, self.currentText(), self.width() - px(36)))
            return True
        return super().event(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the wheel scrolls the panel and must not change a setting

    def _take_choice(self, index: int) -> None:
        if index >= 0:
            self.value_changed.emit(self.value)


def _elided(widget: QWidget, text: str, width_px: int) -> str:
    return widget.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, width_px)


def _tip(event: QHelpEvent, widget: QWidget, text: str, shown: str) -> None:
    """Shows `text` as the tooltip if it is `shown` shortened, else the tooltip of the widget."""
    show_tip(event, widget, widget.toolTip() if shown == text else text)
