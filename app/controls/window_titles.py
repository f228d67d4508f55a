"""WindowTitles: a window's name and a line about it, at the left of its header."""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.controls.text_label import TextLabel
from app.theme.theme import Theme


class WindowTitles(QWidget):
    """The line is shown in full or not at all, and then the tooltip says it."""

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
        """The line, seen or not."""
        return self.subtitle.text()

    def say(self, text: str) -> None:
        """Another line."""
        self.subtitle.setText(text)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()  # a zoom
        return super().event(event)

    def _fit(self) -> None:
        fits = self.subtitle.sizeHint().width() <= self.width()
        self.subtitle.setVisible(fits and bool(self.says))
        self.setToolTip("" if fits else self.says)
