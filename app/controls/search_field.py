"""SearchField: a search line, 28 high, with a magnifier and a clear button while it has text.

Escape clears it; if it is empty the window handles Escape. Return and Down emit `results_wanted`.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QSizePolicy, QWidget

from app.controls.buttons.icon_button import IconButton
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_font
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_px, height_of, painter_on, place, px, px_size, ratio_of, width_of

HEIGHT_PX = 28
_ICON_PX = 14
_CLEAR_PX = 20
_LEFT_PX, _RIGHT_PX = 27, 6
_LEAST_PX = 200


class SearchField(QLineEdit):
    """`name` is the placeholder and the accessible name."""

    results_wanted = Signal()  # Return or Down: moves to the results

    def __init__(self, theme: Theme, name: str, clear_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        self.setFrame(False)
        set_font(self, 12.5)
        set_fixed_height(self, HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._clear = IconButton(theme, "x", clear_name, False, self, size=QSize(_CLEAR_PX, _CLEAR_PX))
        self._clear.clicked.connect(self.clear)
        self._clear.hide()
        self.textChanged.connect(self._show_clear_button)
        self._ring = FocusRing(self, theme, 6, with_mouse=True)
        theme.changed.connect(self._recolour)
        self._recolour()

    @property
    def clear_button(self) -> IconButton:
        """The clear button at the right."""
        return self._clear

    def sizeHint(self) -> QSize:
        text = design_px(QFontMetricsF(self.font()).horizontalAdvance(self.placeholderText()))
        # QLineEdit keeps 2 px at both sides of its text.
        needed = _LEFT_PX + math.ceil(text) + 4 + _RIGHT_PX
        return px_size(QSize(max(_LEAST_PX, needed), HEIGHT_PX))

    def event(self, event: QEvent) -> bool:
        # Escape clears a field with text before the window handles it.
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_Escape
            and self.text()
            and self.text()
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.results_wanted.emit()
        else:
            super().keyPressEvent(event)
            return
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        x, y = width_of(self) - _CLEAR_PX - 4, (height_of(self) - _CLEAR_PX) // 2
        place(self._clear, x, y, _CLEAR_PX, _CLEAR_PX)
        self._set_text_margins()

    def _show_clear_button(self, text: str) -> None:
        self._clear.setVisible(bool(text))
        self._set_text_margins()

    def _set_text_margins(self) -> None:
        """Gives the placeholder the space of the clear button, which is hidden without text."""
        right = _CLEAR_PX + 6 if self.text() else _RIGHT_PX
        self.setTextMargins(px(_LEFT_PX), 0, px(right), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, area_of(self), 6, self._theme.color("sel"))
        icon = icon_pixmap("search", self._theme.color("text2"), _ICON_PX, ratio_of(self))
        painter.drawPixmap(QPointF(9, (height_of(self) - _ICON_PX) // 2), icon)
        painter.end()
        super().paintEvent(event)

    def _recolour(self) -> None:
        palette = self.palette()
        role = QPalette.ColorRole
        palette.setColor(role.Base, Qt.GlobalColor.transparent)
        palette.setColor(role.Text, self._theme.color("text"))
        palette.setColor(role.PlaceholderText, self._theme.color("text2"))
        palette.setColor(role.Highlight, self._theme.color("accent_fill"))
        palette.setColor(role.HighlightedText, self._theme.color("on_accent"))
        self.setPalette(palette)
        self.update()
