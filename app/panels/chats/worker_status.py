"""WorkerStatus: the foot of the sidebar. A dot and two lines say how the worker is."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.icon_button import IconButton
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.panels.chats import strings
from app.theme.measures import set_fixed_height, set_margins
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, width_of

Level = Literal["ready", "busy", "bad", "idle"]
_DOTS: dict[Level, str] = {
    "ready": "series_blue",
    "busy": "series_blue",
    "bad": "series_vermilion",
    "idle": "normal_mark",
}
_HEIGHT_PX = 52
_DOT_PX = 8


class WorkerStatus(QWidget):
    """52 high with a hairline above, and a button that leads to the models."""

    models_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._level: Level = "idle"
        self._title = TextLabel(theme, "", 12, 16, "text", weight=500)
        self._detail = TextLabel(theme, "", 11, 15, tabular=True)
        self.models_button = IconButton(theme, "models", strings.MODELS)
        self.models_button.clicked.connect(self.models_requested)
        lines = QVBoxLayout()
        lines.setSpacing(0)
        lines.addStretch(1)
        lines.addWidget(self._title)
        lines.addWidget(self._detail)
        lines.addStretch(1)
        row = QHBoxLayout(self)
        set_margins(row, 16 + _DOT_PX + 10, 1, 10, 0)
        row.addLayout(lines, 1)
        row.addWidget(self.models_button)
        set_fixed_height(self, _HEIGHT_PX)
        self.setAccessibleName(strings.WORKER)
        theme.changed.connect(self.update)

    @property
    def level(self) -> Level:
        """How the worker is, as the dot says it."""
        return self._level

    def show_state(self, title: str, detail: str, level: Level) -> None:
        """Two short lines, and the dot's meaning."""
        self._level = level
        self._title.setText(title)
        self._detail.setText(detail)
        self._detail.setVisible(bool(detail))
        self.setToolTip(detail)
        self.setAccessibleDescription(", ".join(filter(None, (title, detail))))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(QRectF(0, 0, width_of(self), 1), self._theme.color("hair"))
        dot = QRectF(16, (height_of(self) + 1 - _DOT_PX) / 2, _DOT_PX, _DOT_PX)
        draw_box(painter, dot, _DOT_PX / 2, self._theme.color(_DOTS[self._level]))
