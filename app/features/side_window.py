"""SideWindow: the base of all windows other than the chat window, and the parts that several of them have."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QComboBox, QWidget

from app.controls.buttons import Kind
from app.controls.sheets import Question
from app.controls.text_label import TextLabel
from app.theme.measures import (
    ANY_PX,
    STRETCH,
    add_gap,
    column_of,
    row_of,
    set_fixed_height,
    set_maximum_width,
    set_minimum_width,
    start_at,
)
from app.theme.sheet import set_ground

HEADER_PX = 52
_LEFT_PX, _RIGHT_PX, _SPACING_PX = 26, 14, 8
_CLICK = Qt.FocusPolicy.ClickFocus


class SideWindow(QWidget):
    """Escape closes it. `title` is also its accessible name; it opens with `size`, at least `minimum`."""

    shown = Signal()  # the window came to the screen and may show old data
    titles: WindowTitles  # in the header, if there is one

    def __init__(self, title: str, size: QSize, minimum: QSize | None = None) -> None:
        super().__init__()
        set_ground(self, "window")
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        if minimum is not None:
            self.setMinimumSize(minimum)
        start_at(self, size)

    def make_header(self, *groups: Sequence[QWidget], subtitle: str = "", left_px: int = _LEFT_PX) -> QWidget:
        """Returns the header: the titles at the left, groups of controls at the right, a hairline below."""
        header = QWidget()
        set_fixed_height(header, HEADER_PX)
        self.titles = WindowTitles(self.windowTitle(), subtitle)
        row = row_of((self.titles, 1), gap=_SPACING_PX, margins=(left_px, 0, _RIGHT_PX, 0))
        for place, group in enumerate(groups):
            if place:
                add_gap(row, _SPACING_PX)
            for control in group:
                row.addWidget(control)
        column_of((row, 1), Hairline(), parent=header)
        return header

    def open_question(
        self, title: str, detail: str, cancel: str, answers: Sequence[tuple[str, str, Kind]]
    ) -> Question:
        question = Question(title, detail, cancel, answers, self)
        question.open()
        return question

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.focusWidget() is None:  # Qt would frame the first button, as if it suggested it
            controls = (each for each in self.findChildren(QWidget) if each.focusPolicy() & _CLICK)
            fields = (each for each in controls if not isinstance(each, QAbstractButton | QComboBox))
            next((each for each in fields if each.isVisibleTo(self)), self).setFocus()
        self.shown.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Closes the window, unless the focused widget has handled Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)


class WindowTitles(QWidget):
    """A title and a subtitle. A subtitle that does not fit is hidden and becomes the tooltip."""

    def __init__(self, title: str, says: str = "") -> None:
        super().__init__()
        self.subtitle = TextLabel(says, 11, 15, tabular=True)
        self.name = TextLabel(title, 13, 17, "text", weight=600, elide=Qt.TextElideMode.ElideMiddle)
        column_of(STRETCH, self.name, self.subtitle, STRETCH, parent=self)

    @property
    def says(self) -> str:
        """The subtitle, visible or not."""
        return self.subtitle.text()

    def say(self, text: str) -> None:
        self.subtitle.setText(text)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()  # the zoom changed
        return super().event(event)

    def _fit(self) -> None:
        fits = self.subtitle.sizeHint().width() <= self.width()
        self.subtitle.setVisible(fits and bool(self.says))
        self.setToolTip("" if fits else self.says)


class Hairline(QWidget):
    """A line, 1 design pixel high, between two parts of a window."""

    def __init__(self) -> None:
        super().__init__()
        set_ground(self, "hair")
        set_fixed_height(self, 1)


class PanelBeside(QWidget):
    """The base of panels at the right of a window, of a fixed width; below its content in a narrow window."""

    def __init__(self, width_px: int) -> None:
        super().__init__()
        self._width_px = width_px
        self.set_beside(True)

    def set_beside(self, beside: bool) -> None:
        """Sets whether it is at the right with its own width, or below over the full width."""
        set_ground(self, "panel", "left" if beside else "top")
        set_minimum_width(self, self._width_px if beside else 0)
        set_maximum_width(self, self._width_px if beside else ANY_PX)
