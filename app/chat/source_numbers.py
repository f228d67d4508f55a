"""SourceNumber and SourcesRow: the numbers of an answer's sources, in its text and below it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.chat import strings
from app.chat.sources import Source
from app.controls.buttons import Button, pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, in_own_direction
from app.controls.text_label import TextLabel
from app.richtext.text_style import TextStyle, answer_style, number_font
from app.theme.theme import Theme
from app.theme.zoom import px

_TIP_CHARACTERS = 400
_HEIGHT_PX = 24
_GAP_PX = 2
_RAISED = 0.36  # baseline of a number above that of the text, relative to its size
_PAD_PX = 3


def _describe(button: QAbstractButton, number: int, source: Source) -> None:
    """Set tooltip and accessible texts of the button that opens `source`."""
    words = source.words if len(source.words) <= _TIP_CHARACTERS else source.words[:_TIP_CHARACTERS] + "…"
    # As rich text, long words are broken into lines of a readable length.
    name, shown = in_own_direction(source.name), in_own_direction(words)
    button.setToolTip(f"<p><b>{escape(name)}</b><br>{escape(shown)}</p>")
    button.setAccessibleName(strings.OPEN_SOURCE.format(number=number))
    button.setAccessibleDescription(f"{source.name}: {words}")


class SourceNumber(QAbstractButton):
    """The number of `source` after a sentence of the answer; `choose` gets the source when it is pressed."""

    def __init__(
        self, theme: Theme, number: int, source: Source, choose: Callable[[Source], object], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self.source = source
        self.setText(str(number))
        _describe(self, number, source)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._ring = FocusRing(self, theme, 4)
        self._style = answer_style()
        self.clicked.connect(lambda: choose(source))

    def place(self, area: QRectF, style: TextStyle) -> None:
        """Move to `area`, the space that a text of that style has for it."""
        self._style = style
        self.setGeometry(area.toAlignedRect())
        self.show()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        font = number_font(self._style)
        metrics = QFontMetricsF(font)
        baseline = self._style.baseline_px - round(_RAISED * self._style.size_px)
        if self.underMouse() or self.isDown():
            top = baseline - metrics.capHeight() - _PAD_PX
            box = QRectF(0, top, self.width(), metrics.capHeight() + 2 * _PAD_PX)
            draw_box(painter, box, 3, self._theme.color("accent_tint"))
        painter.setFont(font)
        painter.setPen(self._theme.color("accent"))
        left = (self.width() - metrics.horizontalAdvance(self.text())) / 2
        painter.drawText(QPointF(left, baseline), self.text())
        painter.end()


class SourcesRow(QWidget):
    """A numbered button for each source: the tooltip shows its sentence, a click passes it to `open_source`.

    Hidden without sources. Buttons that do not fit the width are below the others.
    """

    def __init__(
        self, theme: Theme, open_source: Callable[[Source], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._open = open_source
        self._title = TextLabel(theme, strings.SOURCES, 11, 16, "text2", parent=self)
        self.buttons: list[Button] = []
        self.hide()

    def show_sources(self, sources: tuple[Source, ...]) -> None:
        """Show the sources, numbered from 1 on."""
        for number, source in enumerate(sources, start=1):
            button = Button(self._theme, f"{number}", "link", True, self)
            _describe(button, number, source)
            button.clicked.connect(partial(self._open, source))
            self.buttons.append(button)
            button.show()
        self.setVisible(bool(sources))

    def height_for(self, width: int) -> int:
        """The height in screen pixels for a row of that width."""
        first = left = self._title.sizeHint().width() + px(_GAP_PX)
        self._title.setGeometry(0, px(4), left, px(16))
        top = 0
        for button in self.buttons:
            size = button.sizeHint()
            if left > first and left + size.width() > width:
                left, top = first, top + px(_HEIGHT_PX)
            button.setGeometry(left, top + (px(_HEIGHT_PX) - size.height()) // 2, size.width(), size.height())
            left += size.width() + px(_GAP_PX)
        return top + px(_HEIGHT_PX)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.height_for(self.width())
