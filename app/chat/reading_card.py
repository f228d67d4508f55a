"""ReadingCard: how far the prompt has been read, while no token has come yet.

A prompt that is read at once is not worth a card: `is_worth_showing` says when it is.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.chat import strings
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from core.events import PrefillProgress

_WORTH_TOKENS = 256
_CARD_PX = 95
_NOTE_PX = 28
_PAD_X_PX = 21


def is_worth_showing(progress: PrefillProgress) -> bool:
    """Whether there is enough to read that somebody will wonder."""
    return progress.total_tokens - progress.reused_tokens >= _WORTH_TOKENS


def title_of(progress: PrefillProgress) -> str:
    """What is read, in words."""
    unread = progress.total_tokens - progress.reused_tokens
    if progress.reused_tokens:
        return strings.READING_REST.format(unread=unread, total=progress.total_tokens)
    return strings.READING.format(total=progress.total_tokens)


def time_left(seconds: float | None) -> str:
    """How long it will take, or nothing if that is not known."""
    if seconds is None:
        return ""
    whole = max(1, round(seconds))
    if whole < 60:
        return strings.SECONDS_LEFT.format(seconds=whole)
    return strings.MINUTES_LEFT.format(minutes=whole // 60, seconds=whole % 60)


def read_now(progress: PrefillProgress) -> int:
    """Of what has to be read, how much has been. `done_tokens` counts what was reused, too."""
    unread = progress.total_tokens - progress.reused_tokens
    return max(0, min(unread, progress.done_tokens - progress.reused_tokens))


class ReadingCard(QWidget):
    """`height` is fixed; the width is the column's."""

    HEIGHT_PX = _CARD_PX + _NOTE_PX

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._progress: PrefillProgress | None = None
        theme.changed.connect(self.update)

    def show_progress(self, progress: PrefillProgress) -> None:
        """Newer figures."""
        self._progress = progress
        self.setAccessibleName(title_of(progress))
        self.setAccessibleDescription(time_left(progress.seconds_left))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        progress = self._progress
        if progress is None:
            return
        painter = QPainter(self)
        color = self._theme.color
        card = QRectF(0, 0, self.width(), _CARD_PX)
        draw_box(painter, card, 12, color("raised"), color("hair"))
        left, width = _PAD_X_PX, self.width() - 2 * _PAD_X_PX
        unread = max(1, progress.total_tokens - progress.reused_tokens)
        done = read_now(progress)
        line = QRectF(left, 17, width, 20)
        draw_text(painter, line, title_of(progress), ui_font(15, 600, tabular=True), color("text"), _LEFT)
        remaining = time_left(progress.seconds_left)
        draw_text(painter, line, remaining, ui_font(13, tabular=True), color("text2"), _RIGHT)
        draw_box(painter, QRectF(left, 50, width, 6), 3, color("fill2"))
        if done:
            draw_box(painter, QRectF(left, 50, max(6.0, width * done / unread), 6), 3, color("accent_fill"))
        line = QRectF(left, 63, width, 15)
        small = ui_font(11, tabular=True)
        read = strings.READING_DONE.format(done=done, unread=unread)
        draw_text(painter, line, read, small, color("text2"), _LEFT)
        draw_text(painter, line, f"{100 * done // unread}%", small, color("text2"), _RIGHT)
        note = QRectF(0, _CARD_PX + 12, self.width(), 16)
        draw_text(painter, note, strings.READING_NOTE, ui_font(12), color("text2"), _LEFT)


_LEFT = Qt.AlignmentFlag.AlignLeft
_RIGHT = Qt.AlignmentFlag.AlignRight
