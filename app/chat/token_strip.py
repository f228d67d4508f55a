"""Token classes outside the text: the strip above an answer's footer, and the legend under the composer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QImage, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.chat import strings
from app.chat.answer_text import shown_origin
from app.controls.shapes import draw_box, draw_text
from app.richtext.tint_paint import dots
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import design_point, painter_on, px_size, ratio_of, width_of
from core.events import Origin, Token

HEIGHT_PX = 3
# The bar is too thin for the mouse: the widget extends this far above and below it.
REACH_PX = 4
_GAP_PX = 0.6
_THOUGHT_VEIL = 0.55
_GAP_FROM_PX = 3.0
_COLORS: dict[Origin, str] = {"accepted": "series_green", "bonus": "series_amber", "normal": "normal_mark"}
_CLASSES = tuple(_COLORS)


class TokenStrip(QWidget):
    """A thin bar with a cell for each token in the colour of its class."""

    def __init__(self, theme: Theme, point: Callable[[int], object], parent: QWidget | None = None) -> None:
        """`point` gets the index of the token under the mouse, or −1."""
        super().__init__(parent)
        self._theme = theme
        self._on_pointed = point
        self._cells = bytearray()  # for each token, the index of its class in `_CLASSES`
        self._last: Token | None = None
        self._thoughts: tuple[range, ...] = ()
        self._pointed = -1
        self.setMouseTracking(True)
        self.setAccessibleName(strings.STRIP_NAME)

    def sizeHint(self) -> QSize:
        return px_size(QSize(720, HEIGHT_PX + 2 * REACH_PX))

    def append(self, tokens: Sequence[Token]) -> None:
        """Append cells; the others become narrower."""
        for token in tokens:
            self._cells.append(_CLASSES.index(shown_origin(token, self._last)))
            self._last = token
        self.update()

    def set_thoughts(self, thoughts: Sequence[range]) -> None:
        """Dim the tokens of thoughts."""
        if tuple(thoughts) != self._thoughts:
            self._thoughts = tuple(thoughts)
            self.update()

    def describe(self) -> None:
        """Sets the accessible description: the tokens of each class."""
        counts = {origin: self._cells.count(number) for number, origin in enumerate(_CLASSES)}
        self.setAccessibleDescription(strings.STRIP_SAYS.format(**counts))

    def cell(self, token: int) -> QRectF:
        """The rectangle of a token's cell, in design pixels."""
        width = width_of(self) / max(1, len(self._cells))
        return QRectF(token * width, REACH_PX, width, HEIGHT_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._cells:
            return
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        shape.addRoundedRect(QRectF(0, REACH_PX, width_of(self), HEIGHT_PX), HEIGHT_PX / 2, HEIGHT_PX / 2)
        painter.setClipPath(shape)
        self._paint_cells(painter)
        veil = self._theme.color("window")
        veil.setAlphaF(_THOUGHT_VEIL)
        for tokens in self._thoughts:
            painter.fillRect(self.cell(tokens.start).united(self.cell(tokens.stop - 1)), veil)

    def _paint_cells(self, painter: QPainter) -> None:
        width = width_of(self) / len(self._cells)
        if width > _GAP_FROM_PX:
            for number, index in enumerate(self._cells):
                cell = QRectF(number * width, REACH_PX, width - _GAP_PX, HEIGHT_PX)
                painter.fillRect(cell, self._theme.color(_COLORS[_CLASSES[index]]))
            return
        # Thousands of narrow cells are scaled by Qt, because painting each takes long.
        bar = self._bar()
        pixels = max(1, round(width_of(self) * ratio_of(self)))
        if bar.width() > pixels:
            bar = bar.scaled(
                pixels,
                1,
                Qt.AspectRatioMode.IgnoreAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
        painter.drawImage(QRectF(0, REACH_PX, width_of(self), HEIGHT_PX), bar)

    def _bar(self) -> QImage:
        """An image with one pixel per token."""
        count = len(self._cells)
        indexed = QImage(bytes(self._cells), count, 1, count, QImage.Format.Format_Indexed8)
        indexed.setColorTable([self._theme.color(name).rgb() for name in _COLORS.values()])
        return indexed.convertToFormat(QImage.Format.Format_RGB32)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() != Qt.MouseButton.NoButton or not self._cells:
            return
        number = int(design_point(event.position()).x() * len(self._cells) / max(1, width_of(self)))
        self._point(max(0, min(number, len(self._cells) - 1)))

    def leaveEvent(self, event: QEvent) -> None:
        self._point(-1)

    def _point(self, token: int) -> None:
        if token != self._pointed:
            self._pointed = token
            self._on_pointed(token)


_LEGEND_HEIGHT_PX = 34
_SWATCH_WIDTH_PX = 26
_SWATCH_HEIGHT_PX = 16
_LABEL_GAP_PX = 7
_ITEM_GAP_PX = 20


class Legend(QWidget):
    """The token classes in one centred line; the hint is left out where it does not fit."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.is_wanted = True  # False while token tint is off
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(", ".join(strings.CLASS_NAMES[origin] for origin in _CLASSES))
        self.setAccessibleDescription(" ".join(strings.CLASS_EXPLAINED[origin] for origin in _CLASSES))

    def sizeHint(self) -> QSize:
        return px_size(QSize(560, _LEGEND_HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(0, _LEGEND_HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = ui_font(11)
        metrics = QFontMetricsF(font)
        labels = [metrics.horizontalAdvance(strings.CLASS_NAMES[origin]) for origin in _CLASSES]
        keys = sum(labels) + 3 * (_SWATCH_WIDTH_PX + _LABEL_GAP_PX) + 2 * _ITEM_GAP_PX
        hint = metrics.horizontalAdvance(strings.LEGEND_HINT)
        with_hint = keys + _ITEM_GAP_PX + hint <= width_of(self) - 16
        x = (width_of(self) - keys - (_ITEM_GAP_PX + hint if with_hint else 0)) / 2
        ink = self._theme.color("text2")
        for origin, width in zip(_CLASSES, labels):
            self._paint_swatch(
                painter, origin, QPointF(round(x), (_LEGEND_HEIGHT_PX - _SWATCH_HEIGHT_PX) / 2)
            )
            x += _SWATCH_WIDTH_PX + _LABEL_GAP_PX
            area = QRectF(x, 0, width + 1, _LEGEND_HEIGHT_PX)
            draw_text(painter, area, strings.CLASS_NAMES[origin], font, ink, Qt.AlignmentFlag.AlignLeft)
            x += width + _ITEM_GAP_PX
        if with_hint:
            area = QRectF(x, 0, hint + 1, _LEGEND_HEIGHT_PX)
            draw_text(painter, area, strings.LEGEND_HINT, font, ink, Qt.AlignmentFlag.AlignLeft)

    def _paint_swatch(self, painter: QPainter, origin: Origin, corner: QPointF) -> None:
        box = QRectF(corner.x(), corner.y(), _SWATCH_WIDTH_PX, _SWATCH_HEIGHT_PX)
        if origin == "normal":
            pen = QPen(self._theme.color("hair2"), 1, Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([2.5, 2])
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3.5, 3.5)
            return
        draw_box(painter, box, 4, self._theme.color(f"{origin}_tint"))
        line = self._theme.color(f"{origin}_line")
        if origin == "accepted":
            painter.fillRect(QRectF(box.left() + 3, box.bottom() - 3, 18.5, 1.5), line)
            return
        painter.setPen(dots(line))
        y = box.bottom() - 2.5
        painter.drawLine(QLineF(box.left() + 4, y, box.left() + 22.5, y))
