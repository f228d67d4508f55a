"""The tools of the composer: the context gauge, the send button and the thinking switch."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QWidget

from app.chat import strings
from app.controls.choices import Switch
from app.controls.focus_ring import FocusRing
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_size, set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px_size, ratio_of, width_of

# Above this the ring is vermilion.
WARN_FRACTION = 0.85
_HEIGHT_PX = 24
_LEFT_PX, _RING_PX, _GAP_PX, _RIGHT_PX = 7, 14, 6, 10
_RADIUS_PX, _STROKE_PX = 5.2, 2.0


class ContextPill(QWidget):
    """The used part of the model's context, as a ring and in figures. Hidden until the limit is known.

    Skipped tokens keep their positions in the context but are not in memory; their part of the ring is paler.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._used_tokens = 0
        self._limit_tokens = 0
        self._skipped_tokens = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    @property
    def used_tokens(self) -> int:
        return self._used_tokens

    @property
    def limit_tokens(self) -> int:
        """The model's context; 0 while it is unknown."""
        return self._limit_tokens

    @property
    def near_limit(self) -> bool:
        """Whether the ring shows a warning."""
        return self._used_tokens > WARN_FRACTION * self._limit_tokens > 0

    @property
    def skipped_tokens(self) -> int:
        """How many of the used tokens were or will be skipped."""
        return self._skipped_tokens

    def show_context(self, used_tokens: int, limit_tokens: int, skipped_tokens: int = 0) -> None:
        """Show the figures. `limit_tokens` is 0 if unknown; `skipped_tokens` are part of the used ones."""
        self._used_tokens, self._limit_tokens = used_tokens, limit_tokens
        self._skipped_tokens = skipped_tokens
        self.setVisible(limit_tokens > 0)
        spoken = strings.context_spoken(used_tokens, limit_tokens, skipped_tokens)
        self.setAccessibleName(spoken)
        self.setToolTip(spoken)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(ui_font(11.5, tabular=True)).horizontalAdvance(self._text())
        return px_size(QSize(round(_LEFT_PX + _RING_PX + _GAP_PX + width + _RIGHT_PX), _HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = QPointF(_LEFT_PX + _RING_PX / 2, _HEIGHT_PX / 2)
        ring = QRectF(middle.x() - _RADIUS_PX, middle.y() - _RADIUS_PX, 2 * _RADIUS_PX, 2 * _RADIUS_PX)
        painter.setPen(QPen(self._theme.color("hair2"), _STROKE_PX))
        painter.drawEllipse(ring)
        fraction = min(1.0, self._used_tokens / self._limit_tokens) if self._limit_tokens else 0.0
        color = self._theme.color("series_vermilion" if self.near_limit else "accent")
        painter.setPen(QPen(color, _STROKE_PX, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        # Qt measures in sixteenths of a degree, anticlockwise from three o'clock.
        painter.drawArc(ring, 90 * 16, -round(fraction * 360 * 16))
        if self._skipped_tokens and not self.near_limit:
            held = fraction * (1 - min(1.0, self._skipped_tokens / self._used_tokens))
            pale = self._theme.color("accent_mid")
            painter.setPen(QPen(pale, _STROKE_PX, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            painter.drawArc(ring, round((90 - held * 360) * 16), -round((fraction - held) * 360 * 16))
        painter.setFont(ui_font(11.5, tabular=True))
        painter.setPen(self._theme.color("text2"))
        words = QRectF(_LEFT_PX + _RING_PX + _GAP_PX, 0, width_of(self), _HEIGHT_PX)
        painter.drawText(words, int(Qt.AlignmentFlag.AlignVCenter), self._text())
        painter.end()

    def _text(self) -> str:
        return strings.context_pill(self._used_tokens, self._limit_tokens)


_SIDE_PX = 28
_ICON_PX = 16


class SendButton(QAbstractButton):
    """The round button that sends the message, or stops the answer."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._stops = False
        set_fixed_size(self, QSize(_SIDE_PX, _SIDE_PX))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._ring = FocusRing(self, theme, _SIDE_PX / 2)
        self.set_stops(False)

    @property
    def stops(self) -> bool:
        """Whether it is the stop button."""
        return self._stops

    def set_stops(self, stops: bool) -> None:
        self._stops = stops
        self.setAccessibleName(strings.STOP if stops else strings.SEND)
        self.setToolTip(strings.STOP if stops else strings.SEND)
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(_SIDE_PX, _SIDE_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(self._fill()))
        painter.drawEllipse(area_of(self))
        ink = self._theme.color("on_accent" if self.isEnabled() else "text3")
        pixmap = icon_pixmap("stop" if self._stops else "send", ink, _ICON_PX, ratio_of(self))
        corner = (width_of(self) - _ICON_PX) / 2
        painter.drawPixmap(QPointF(corner, corner), pixmap)
        painter.end()

    def _fill(self) -> str:
        if not self.isEnabled():
            return "fill2"
        if self.isDown():
            return "accent_pressed"
        return "accent_hover" if self.underMouse() else "accent_fill"


_THINK_SWITCH_GAP_PX = 7
_THINK_SWITCH_LEFT_PX = 6


class ThinkSwitch(QWidget):
    """Whether the model thinks before it answers. Hidden for models without that choice."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.switch = Switch(theme)
        self.switch.setAccessibleName(strings.THINK_FIRST)
        self.switch.setAccessibleDescription(strings.THINK_FIRST_SAYS)
        self.setToolTip(strings.THINK_FIRST_SAYS)
        row = QHBoxLayout(self)
        set_margins(row, _THINK_SWITCH_LEFT_PX, 0, 0, 0)
        set_spacing(row, _THINK_SWITCH_GAP_PX)
        row.addWidget(self.switch)
        row.addWidget(TextLabel(theme, strings.THINK_FIRST, 12, 16))
        self.turned = self.switch.clicked  # bool, by the person
        self.hide()

    def show_choice(self, known: bool, thinks: bool) -> None:
        """Show the switch if the model has it, in that state."""
        self.switch.setChecked(thinks)
        self.setVisible(known)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Clicks on the label turn the switch as well."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.switch.click()
