"""SourcesRow: the sentences an answer stands on: a tooltip shows one, a click opens its document."""

from __future__ import annotations

from functools import partial
from html import escape

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.chat.answer import strings
from app.chat.reading.sources import Source
from app.controls.buttons.button import Button
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.theme.theme import Theme
from app.theme.zoom import px

HEIGHT_PX = 24
_GAP_PX = 2
_TIP_CHARACTERS = 400


class SourcesRow(QWidget):
    """Hidden where there are none."""

    source_chosen = Signal(object)  # Source

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = TextLabel(theme, strings.SOURCES, 11, 16, "text2", parent=self)
        self.buttons: list[Button] = []
        self.hide()
        theme.zoomed.connect(self._arrange)

    def show_sources(self, sources: tuple[Source, ...]) -> None:
        """The best first."""
        for number, source in enumerate(sources, start=1):
            button = Button(self._theme, f"{number}", "link", True, self)
            words = (
                source.words if len(source.words) <= _TIP_CHARACTERS else source.words[:_TIP_CHARACTERS] + "…"
            )
            # As rich text, long words are broken into lines of a readable length.
            button.setToolTip(
                f"<p><b>{escape(in_own_direction(source.name))}</b><br>{escape(in_own_direction(words))}</p>"
            )
            button.setAccessibleName(strings.OPEN_SOURCE.format(number=number))
            button.setAccessibleDescription(f"{source.name}: {words}")
            button.clicked.connect(partial(self.source_chosen.emit, source))
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
