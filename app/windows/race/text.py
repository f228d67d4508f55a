"""RaceText: one side's answer up to a moment, tinted, in a frame that scrolls along with its end."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.chat.answer.answer_body import AnswerBody
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_box
from app.richtext.canvas.text_canvas import MARGIN_PX
from app.theme.measures import set_margins
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px, px_size
from core.events import Token

_PADDING_PX = 10
_TOP_PX = 2
_RADIUS_PX = 9
# Five lines or so; a page that has not so much scrolls.
_LEAST = QSize(160, 140)


class RaceText(QWidget):
    """Going on appends; going back writes the beginning anew."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._tokens: Sequence[Token] = ()
        self._shown = 0
        self._finished = False
        self._area = QScrollArea(self)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        OverlayScrollBar(theme, self._area)
        self._page = QWidget()
        self._area.setWidget(self._page)
        self.body = self._new_body()
        column = QVBoxLayout(self)
        # The frame's round corners stay free.
        set_margins(column, 4, 8, 4, 8)
        column.addWidget(self._area)
        theme.changed.connect(self._restyle)
        self._restyle()

    def minimumSizeHint(self) -> QSize:
        return px_size(_LEAST)

    def show_tokens(self, tokens: Sequence[Token], count: int, done: bool) -> None:
        """The first `count` of `tokens`; `done`: no more will come."""
        if tokens is not self._tokens or count < self._shown or (self._finished and not done):
            self._tokens = tokens
            self._start_anew()
        if count > self._shown:
            self.body.append(tokens[self._shown : count])
            self._shown = count
        if done and not self._finished:
            self._finished = True
            self.body.finish()
        # Before it begins there is nobody who writes, and so no caret.
        self.body.setVisible(bool(tokens))
        self._arrange()
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.maximum())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), _RADIUS_PX, color("window"), color("hair"))

    def _new_body(self) -> AnswerBody:
        body = AnswerBody(self._theme, self._page)
        body.setAccessibleName(self._name)
        body.hide()
        return body

    def _start_anew(self) -> None:
        self._shown, self._finished = 0, False
        self.body.hide()
        self.body.deleteLater()
        self.body = self._new_body()

    def _arrange(self) -> None:
        width = self._area.viewport().width()
        column = max(40, width - 2 * px(_PADDING_PX))
        height = self.body.height_for(column)
        self._page.resize(width, height + 2 * px(_TOP_PX))
        self.body.setGeometry(px(_PADDING_PX) - MARGIN_PX, px(_TOP_PX), column + 2 * MARGIN_PX, height + 2)

    def _restyle(self) -> None:
        for widget in (self._area.viewport(), self._page):
            palette = QPalette(widget.palette())
            palette.setColor(QPalette.ColorRole.Window, self._theme.color("window"))
            widget.setPalette(palette)
        self._arrange()
        self.update()
