"""SourcesRow: the passages an answer stands on, by number; a click goes to the place in the document."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.chat.answer import strings
from app.controls.buttons.button import Button
from app.controls.text_label import TextLabel
from app.theme.theme import Theme
from app.theme.zoom import px
from core.events import Passage

HEIGHT_PX = 24
_GAP_PX = 2


class SourcesRow(QWidget):
    """Hidden where there are none."""

    place_chosen = Signal(object)  # events.Passage

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = TextLabel(theme, strings.SOURCES, 11, 16, "text2", parent=self)
        self.buttons: list[Button] = []
        self.hide()
        theme.zoomed.connect(self._arrange)

    def show_sources(self, sources: tuple[Passage, ...]) -> None:
        """The best first."""
        for number, passage in enumerate(sources, start=1):
            button = Button(self._theme, f"{number}", "link", True, self)
            words = strings.OPEN_SOURCE.format(number=number)
            button.setToolTip(words)
            button.setAccessibleName(words)
            button.clicked.connect(partial(self.place_chosen.emit, passage))
            self.buttons.append(button)
            button.show()
        self._arrange()
        self.setVisible(bool(sources))

    def _arrange(self) -> None:
        left = self._title.sizeHint().width() + px(_GAP_PX)
        self._title.setGeometry(0, px(4), left, px(16))
        for button in self.buttons:
            size = button.sizeHint()
            button.setGeometry(left, (px(HEIGHT_PX) - size.height()) // 2, size.width(), size.height())
            left += size.width() + px(_GAP_PX)
        self.setFixedWidth(left)
