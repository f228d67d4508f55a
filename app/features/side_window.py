"""SideWindow: the base of all windows other than the chat window: header, hairlines, questions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons import Kind
from app.controls.sheets import Question
from app.controls.text_label import TextLabel
from app.theme.measures import add_gap, set_fixed_height, set_margins, set_spacing, start_at
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on

HEADER_PX = 52
_LEFT_PX, _RIGHT_PX, _SPACING_PX = 26, 14, 8


class SideWindow(QWidget):
    """Escape closes it. `title` is also its accessible name; it opens with `size`, at least `minimum`."""

    shown = Signal()  # the window came to the screen and may show old data
    titles: WindowTitles  # in the header, if there is one

    def __init__(
        self,
        theme: Theme,
        title: str,
        size: QSize,
        minimum: QSize | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        if minimum is not None:
            self.setMinimumSize(minimum)
        start_at(self, size)

    def make_header(self, *groups: Sequence[QWidget], subtitle: str = "") -> QWidget:
        """Returns the header: the titles at the left, groups of controls at the right, a hairline below."""
        header = QWidget()
        set_fixed_height(header, HEADER_PX)
        column = QVBoxLayout(header)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        row = QHBoxLayout()
        set_margins(row, _LEFT_PX, 0, _RIGHT_PX, 0)
        set_spacing(row, _SPACING_PX)
        self.titles = WindowTitles(self._theme, self.windowTitle(), subtitle)
        row.addWidget(self.titles, 1)
        for place, group in enumerate(groups):
            if place:
                add_gap(row, _SPACING_PX)
            for control in group:
                row.addWidget(control)
        column.addLayout(row, 1)
        column.addWidget(Hairline(self._theme))
        return header

    def make_column(self, *parts: tuple[QWidget, int]) -> QVBoxLayout:
        """Lays the parts out below one another without gaps; each with its share of spare height."""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part, share in parts:
            column.addWidget(part, share)
        return column

    def open_question(
        self, title: str, detail: str, cancel: str, answers: Sequence[tuple[str, str, Kind]]
    ) -> Question:
        """Opens a question over the window and returns it."""
        question = Question(self._theme, title, detail, cancel, answers, self)
        question.open()
        return question

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Closes the window, unless the focused widget has handled Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))
        painter.end()


class WindowTitles(QWidget):
    """A title and a subtitle. A subtitle that does not fit is hidden and becomes the tooltip."""

    def __init__(self, theme: Theme, title: str, says: str = "") -> None:
        super().__init__()
        self.subtitle = TextLabel(theme, says, 11, 15, tabular=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addStretch(1)
        column.addWidget(TextLabel(theme, title, 13, 17, "text", weight=600))
        column.addWidget(self.subtitle)
        column.addStretch(1)

    @property
    def says(self) -> str:
        """The subtitle, visible or not."""
        return self.subtitle.text()

    def say(self, text: str) -> None:
        """Replaces the subtitle."""
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

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        set_fixed_height(self, 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("hair"))
        painter.end()
