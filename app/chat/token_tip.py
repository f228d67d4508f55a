"""TokenTip: the tooltip with the facts of a token, and when it is shown.

It is a child widget of the transcript and transparent for the mouse.
"""

from __future__ import annotations

from PySide6.QtCore import QLineF, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from app.chat import strings
from app.chat.answer import AnswerView
from app.chat.token_facts import TokenFacts
from app.controls.shapes import draw_box, draw_text
from app.richtext.tint_paint import RULE_PX, dots
from app.theme.fonts import mono_font, ui_font
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px, px_size
from core.events import Origin

WIDTH_PX = 248
_RADIUS_PX = 10
_PAD_X_PX = 13
_PAD_TOP_PX = 11
_PAD_BOTTOM_PX = 12
_HEAD_PX = 21
_HEAD_GAP_PX = 6
_ROW_PX = 19
_ROW_GAP_PX = 1
_LABEL_PX = 88
_GAP_PX = 8
_LINK_GAP_PX = 6
_LINK_LINE_PX = 16
_LINK_LINES = 3
# Margin around the card for its shadow.
SHADOW_PX = 24


def place_tip(card: QSize, target: QRect, inside: QRect) -> QPoint:
    """The card's upper left corner: 8 px below `target`, or above it, within `inside`."""
    x = max(inside.left(), min(target.left() - px(24), inside.right() + 1 - card.width()))
    below = target.bottom() + 1 + px(_GAP_PX)
    above = target.top() - px(_GAP_PX) - card.height()
    fits_below = below + card.height() <= inside.bottom() + 1
    y = below if fits_below or above < inside.top() else above
    return QPoint(x, max(inside.top(), min(y, inside.bottom() + 1 - card.height())))


class TokenTip(QWidget):
    """A card with the facts of one token. Hidden until `show_facts()`."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._facts: TokenFacts | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()

    @property
    def facts(self) -> TokenFacts | None:
        return self._facts

    @property
    def card(self) -> QRect:
        """The card's rectangle in the parent, without the shadow."""
        around = px(SHADOW_PX)
        return self.geometry().adjusted(around, around, -around, -around)

    def show_facts(self, facts: TokenFacts, target: QRect, inside: QRect) -> None:
        """Show `facts` of the token at `target`, within `inside`; both in the parent's coordinates."""
        self._facts = facts
        rows = len(facts.rows) + 1
        height = _PAD_TOP_PX + _HEAD_PX + _HEAD_GAP_PX + rows * _ROW_PX + (rows - 1) * _ROW_GAP_PX
        if facts.address:
            height += _LINK_GAP_PX + _LINK_LINE_PX * (1 + len(self._address_lines(facts.address)))
        card = px_size(QSize(WIDTH_PX, height + _PAD_BOTTOM_PX))
        corner, around = place_tip(card, target, inside), px(SHADOW_PX)
        self.setGeometry(QRect(corner, card).adjusted(-around, -around, around, around))
        texts = [facts.text, facts.id, facts.class_name, *(f"{label} {value}" for label, value in facts.rows)]
        if facts.address:
            texts.append(f"{strings.TIP_LINK} {facts.address}")
        self.setAccessibleName(", ".join(texts))
        self.raise_()
        self.show()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        facts = self._facts
        if facts is None:
            return
        painter = painter_on(self)
        card = area_of(self).adjusted(SHADOW_PX, SHADOW_PX, -SHADOW_PX, -SHADOW_PX)
        self._paint_shadow(painter, card)
        edge = QColor(255, 255, 255, 26) if self._theme.is_dark else QColor(0, 0, 0, 26)
        draw_box(painter, card.adjusted(-0.5, -0.5, 0.5, 0.5), _RADIUS_PX + 0.5, edge)
        draw_box(painter, card, _RADIUS_PX, self._theme.color("tip"))
        x, y = card.left() + _PAD_X_PX, card.top() + _PAD_TOP_PX
        self._paint_head(painter, facts, QRectF(x, y, card.width() - 2 * _PAD_X_PX, _HEAD_PX))
        y += _HEAD_PX + _HEAD_GAP_PX
        self._paint_label(painter, strings.TIP_CLASS, x, y)
        self._paint_class(painter, facts, x + _LABEL_PX, y)
        value_width = card.right() - _PAD_X_PX - x - _LABEL_PX
        for label, value in facts.rows:
            y += _ROW_PX + _ROW_GAP_PX
            self._paint_label(painter, label, x, y)
            area = QRectF(x + _LABEL_PX, y, value_width, _ROW_PX)
            draw_text(painter, area, value, ui_font(12, tabular=True), self._theme.color("text"), _LEFT)
        if facts.address:
            y += _ROW_PX + _LINK_GAP_PX
            ink = "text2"
            for line in (strings.TIP_LINK, *self._address_lines(facts.address)):
                area = QRectF(x, y, card.width() - 2 * _PAD_X_PX, _LINK_LINE_PX)
                draw_text(painter, area, line, ui_font(11.5), self._theme.color(ink), _LEFT)
                y += _LINK_LINE_PX
                ink = "accent"

    def _address_lines(self, address: str) -> list[str]:
        """The address in at most three lines; a longer one is cut at its end, so that the host is visible."""
        metrics, width = QFontMetricsF(ui_font(11.5)), WIDTH_PX - 2 * _PAD_X_PX - 2
        lines: list[str] = []
        while address and len(lines) < _LINK_LINES:
            fits = next(
                (n for n in range(len(address), 1, -1) if metrics.horizontalAdvance(address[:n]) <= width), 1
            )
            lines.append(address[:fits])
            address = address[fits:]
        if address:
            lines[-1] = lines[-1][:-1] + "…"
        return lines

    def _paint_head(self, painter: QPainter, facts: TokenFacts, area: QRectF) -> None:
        mono = mono_font(13)
        text_width = min(QFontMetricsF(mono).horizontalAdvance(facts.text), area.width() - 78)
        box = QRectF(area.left(), area.top(), text_width + 12, area.height())
        draw_box(painter, box, 5, self._theme.color("fill2"))
        inner = box.adjusted(6, 0, -6, 0)
        draw_text(painter, inner, facts.text, mono, self._theme.color("text"), _LEFT)
        rest = QRectF(box.right() + 8, area.top(), area.right() - box.right() - 8, area.height())
        draw_text(painter, rest, facts.id, mono_font(11.5), self._theme.color("text2"), _LEFT)

    def _paint_label(self, painter: QPainter, label: str, x: float, y: float) -> None:
        area = QRectF(x, y, _LABEL_PX, _ROW_PX)
        draw_text(painter, area, label, ui_font(12), self._theme.color("text2"), _LEFT)

    def _paint_class(self, painter: QPainter, facts: TokenFacts, x: float, y: float) -> None:
        """Paint the class's name with the marks of its tokens."""
        font = ui_font(12)
        paint_class_name(painter, self._theme, facts.origin, facts.class_name, QPointF(x, y + 14), font)
        draw_text(
            painter, QRectF(x, y, 140, _ROW_PX), facts.class_name, font, self._theme.color("text"), _LEFT
        )

    def _paint_shadow(self, painter: QPainter, card: QRectF) -> None:
        """Paint a soft shadow of thin layers."""
        layer = QColor(0, 0, 0, 9 if self._theme.is_dark else 3)
        for spread in range(-6, SHADOW_PX - 8, 2):
            box = card.adjusted(-spread, -spread + 8, spread, spread + 8)
            draw_box(painter, box, _RADIUS_PX + spread, layer)


def paint_class_name(
    painter: QPainter, theme: Theme, origin: Origin, name: str, baseline: QPointF, font: QFont
) -> None:
    """Paint the tint and underline of a class below its name."""
    if origin == "normal":
        return
    metrics = QFontMetricsF(font)
    width = metrics.horizontalAdvance(name)
    x, y = baseline.x(), baseline.y()
    top, bottom = round(metrics.ascent() + 1.5), round(metrics.descent() + 1.5)
    draw_box(painter, QRectF(x - 2, y - top, width + 4, top + bottom), 4, theme.color(f"{origin}_tint"))
    line = theme.color(f"{origin}_line")
    rule = y + bottom - 0.25
    if origin == "accepted":
        painter.fillRect(QRectF(x, rule - RULE_PX / 2, width, RULE_PX), line)
        return
    painter.setPen(dots(line))
    painter.drawLine(QLineF(x + 1, rule, x + width - 0.5, rule))


_LEFT = Qt.AlignmentFlag.AlignLeft


_DELAY_MS = 150
_MARGIN_PX = 8


class Tips(QObject):
    """Shows the tooltip of the transcript `area` after 150 ms, or at once while it is open."""

    def __init__(self, theme: Theme, area: QAbstractScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._pointed: tuple[AnswerView, int, QRect] | None = None
        self.tip = TokenTip(theme, area)
        self._timer = QTimer(self, interval=_DELAY_MS, singleShot=True)
        self._timer.timeout.connect(self._show)

    def point(self, answer: AnswerView, token: int, target: QRect) -> None:
        """The mouse or the keyboard points at a token at `target` in `answer`; −1: at none."""
        if token < 0:
            self.drop()
            return
        self._pointed = (answer, token, target)
        # The address of a link is shown before it can be clicked.
        if self.tip.isVisible() or answer.body.link_of(token):
            self._show()
        else:
            self._timer.start()

    def keep(self) -> None:
        """Move the open tooltip with its text."""
        if self.tip.isVisible():
            self._show()

    def drop(self) -> None:
        self._pointed = None
        self._timer.stop()
        self.tip.hide()

    def forget(self, answer: AnswerView) -> None:
        """Hide the tooltip if it belongs to `answer`, which will be deleted."""
        if self._pointed and self._pointed[0] is answer:
            self.drop()

    def _show(self) -> None:
        if self._pointed is None:
            return
        answer, token, target = self._pointed
        seen = self._area.viewport().geometry()
        target = target.translated(answer.mapTo(self._area, QPoint(0, 0)))
        if not seen.intersects(target):
            self.drop()
            return
        inside = seen.adjusted(_MARGIN_PX, _MARGIN_PX, -_MARGIN_PX, -_MARGIN_PX)
        self.tip.show_facts(answer.facts(token), target, inside)
