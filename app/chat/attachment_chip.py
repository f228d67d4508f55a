"""AttachmentChip: one document beside the message, with its size and a button to take it away."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app import strings
from app.controls.focus_ring import FocusRing
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from core.events import Attachment

_HEIGHT_PX = 43
_LEFT_PX, _RIGHT_PX, _GAP_PX = 7, 6, 8
_ICON_BOX = QSize(24, 28)
_REMOVE_PX = 18
_MAX_TEXT_PX = 180


class AttachmentChip(QWidget):
    """`tokens` is None until the worker has counted; characters stand in for it."""

    remove_requested = Signal()

    def __init__(self, theme: Theme, attachment: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._attachment = attachment
        self._tokens: int | None = None
        self.setAccessibleName(attachment.name)
        self._remove = _RemoveButton(theme, strings.remove_attachment(attachment.name), self)
        self._remove.clicked.connect(self.remove_requested)
        theme.changed.connect(self.update)
        self._describe()

    @property
    def attachment(self) -> Attachment:
        """The document."""
        return self._attachment

    @property
    def size_text(self) -> str:
        """The second line."""
        if self._tokens is not None:
            return strings.tokens(self._tokens)
        return strings.characters(len(self._attachment.text))

    def show_tokens(self, tokens: int | None) -> None:
        """What the worker counted."""
        if tokens != self._tokens:
            self._tokens = tokens
            self._describe()
            self.updateGeometry()
            self.resize(self.sizeHint())
            self.update()

    def sizeHint(self) -> QSize:
        text = max(_width(_name_font(), self._attachment.name), _width(_size_font(), self.size_text))
        text = min(text, _MAX_TEXT_PX)
        width = _LEFT_PX + _ICON_BOX.width() + _GAP_PX + text + _GAP_PX + _REMOVE_PX + _RIGHT_PX
        return QSize(round(width), _HEIGHT_PX)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._remove.move(self.width() - _RIGHT_PX - _REMOVE_PX, (self.height() - _REMOVE_PX) // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("hair"), 1))
        painter.setBrush(theme.color("raised"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
        box = QRectF(
            _LEFT_PX, (self.height() - _ICON_BOX.height()) / 2, _ICON_BOX.width(), _ICON_BOX.height()
        )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("fill2" if theme.is_dark else "fill1"))
        painter.drawRoundedRect(box, 5, 5)
        icon = icon_pixmap("doc", theme.color("text2"), 14, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(box.center().x() - 7, box.center().y() - 7), icon)
        left = box.right() + _GAP_PX
        width = self._remove.x() - _GAP_PX / 2 - left
        for font, color, top, height, text in (
            (_name_font(), "text", 6, 16, self._attachment.name),
            (_size_font(), "text2", 22, 15, self.size_text),
        ):
            painter.setFont(font)
            painter.setPen(theme.color(color))
            shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideMiddle, width)
            painter.drawText(QRectF(left, top, width, height), int(Qt.AlignmentFlag.AlignVCenter), shown)
        painter.end()

    def _describe(self) -> None:
        self.setAccessibleDescription(self.size_text)
        self.setToolTip(f"{self._attachment.name}\n{self.size_text}")


class _RemoveButton(QAbstractButton):
    """A small cross."""

    def __init__(self, theme: Theme, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.setFixedSize(_REMOVE_PX, _REMOVE_PX)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._ring = FocusRing(self, theme, 5)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_REMOVE_PX, _REMOVE_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("fill2"))
            painter.drawRoundedRect(QRectF(self.rect()), 5, 5)
        ink = self._theme.color("text" if self.underMouse() or self.hasFocus() else "text3")
        painter.drawPixmap(QPointF(3, 3), icon_pixmap("x", ink, 12, self.devicePixelRatioF()))
        painter.end()


def _name_font() -> QFont:
    return ui_font(12.5, 500)


def _size_font() -> QFont:
    return ui_font(11, tabular=True)


def _width(font: QFont, text: str) -> float:
    # Rounded up, or the text would be elided by the fraction that layouts drop.
    return QFontMetricsF(font).horizontalAdvance(text) + 1
