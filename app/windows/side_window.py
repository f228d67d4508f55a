"""SideWindow: a window beside the chat window. Escape closes it, in all of them."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app.theme.measures import start_at
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on


class SideWindow(QWidget):
    """`title` is its name for screen readers, too; it begins with `size`, never smaller than `minimum`."""

    shown = Signal()  # it came to the screen: what is shown may be old

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
        theme.changed.connect(self.update)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What has the focus comes first, as a question that Escape answers with no."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))
        painter.end()
