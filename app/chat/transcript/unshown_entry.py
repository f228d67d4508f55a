"""UnshownEntry: stands for a message or an answer whose widget could not be made, filled or measured.

It says so, and its Copy gives the text as it was written. Whatever is wrong with the entry, nothing
of it is shown: only its source is known here.
"""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat.answer import action_button
from app.chat.answer.action_button import ActionButton
from app.chat.transcript import strings
from app.richtext.canvas import strings as canvas_strings
from app.richtext.canvas.text_canvas import MARGIN_PX, TextCanvas
from app.theme.theme import Theme
from app.theme.zoom import px, px_size

_GAP_PX = 4
# The button's empty border stands out of the column, as under answers.
_BUTTON_OUTDENT_PX = 6


class UnshownEntry(QWidget):
    """Stands `OUTDENT_PX` out of the reading column on both sides, like what it stands for."""

    OUTDENT_PX = MARGIN_PX

    def __init__(
        self, theme: Theme, name: str, source: str, error: Exception, parent: QWidget | None = None
    ) -> None:
        """`name` says what it stands for; `error` is why."""
        super().__init__(parent)
        self._source = source
        self.body = TextCanvas(theme, None, self)
        self.body.setAccessibleName(name)
        self.body.give_up(error)
        self.body.setAccessibleDescription(canvas_strings.UNSHOWN)
        self.copy_button = ActionButton(theme, "copy", strings.COPY_SOURCE, self)
        self.copy_button.clicked.connect(self._copy)

    @property
    def is_ready(self) -> bool:
        """It is always all there."""
        return True

    def ready_some(self) -> bool:
        """Nothing to do: see `Answer`."""
        return True

    def height_for(self, width: int) -> int:
        """The height when the reading column is `width` wide."""
        return self.body.height_for(width) + px(_GAP_PX) + px_size(action_button.SIZE).height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        column = self.width() - 2 * self.OUTDENT_PX
        height = self.body.height_for(column)
        self.body.setGeometry(self.OUTDENT_PX - MARGIN_PX, 0, column + 2 * MARGIN_PX, height + 2)
        self.copy_button.move(self.OUTDENT_PX - px(_BUTTON_OUTDENT_PX), height + px(_GAP_PX))
        self.copy_button.resize(px_size(action_button.SIZE))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._source)
        self.copy_button.show_done()
