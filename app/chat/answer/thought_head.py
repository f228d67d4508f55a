"""ThoughtHead: the line over a thought that has its own figures, and folds it out and in."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.chat.answer import strings
from app.chat.answer.part_figures import PartFigures
from app.chat.answer.stats_line import SEPARATOR
from app.chat.attachments import strings as attachments_strings
from app.chat.tokens import strings as tokens_strings
from app.chat.tokens.token_facts import seconds
from app.controls.buttons.button import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, height_of, painter_on, px_size, ratio_of

_ICON_PX = 16
_GAP_PX = 5
_FONT_PX = 13


class ThoughtHead(QAbstractButton):
    """Checked while the thought is unfolded; `start` says which thought it is."""

    def __init__(self, theme: Theme, start: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.start = start
        self._theme = theme
        self._over = False
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._ring = FocusRing(self, theme, 5)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self._fit)

    def show_figures(self, figures: PartFigures, over: bool) -> None:
        """Its own figures, so far or at its end. One that came in one piece was not written here."""
        parts = [(strings.THOUGHT if over else strings.THINKING).format(seconds=_tenths(figures.took_s))]
        if figures.tokens > 1:
            parts.append(attachments_strings.TOKENS.format(tokens=figures.tokens))
        if figures.tokens > 1 and figures.percent is not None:
            share = strings.ACCEPTED_SHARE.format(accepted=figures.accepted, percent=figures.percent)
            parts.append(share)
        text = SEPARATOR.join(parts)
        if text == self.text() and over == self._over:
            return
        self._over = over
        self.setText(text)
        self.setAccessibleName(text)
        self.setAccessibleDescription(strings.THOUGHT_SAYS)
        self._fit()
        self.update()

    def _fit(self) -> None:
        self.resize(self.sizeHint())

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(ui_font(_FONT_PX, tabular=True)).horizontalAdvance(self.text())
        return px_size(QSize(int(_ICON_PX + _GAP_PX + width + 5), 20))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color("text2" if self._over else "accent")
        if self.underMouse() and self._over:
            color = self._theme.color("text")
        name = "down" if self.isChecked() else "right"
        icon = icon_pixmap(name, color, _ICON_PX, ratio_of(self))
        painter.drawPixmap(QPointF(0, (height_of(self) - _ICON_PX) // 2), icon)
        area = area_of(self).adjusted(_ICON_PX + _GAP_PX, 0, 0, 0)
        font = ui_font(_FONT_PX, tabular=True)
        draw_text(painter, area, self.text(), font, color, Qt.AlignmentFlag.AlignLeft)


def _tenths(took_s: float) -> str:
    """One decimal while that says something: 0.4 s, 12.3 s, 112 s."""
    return tokens_strings.SECONDS.format(value=f"{took_s:.1f}") if took_s < 99.95 else seconds(took_s)
