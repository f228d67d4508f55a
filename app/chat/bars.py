"""NoticeBar: above the composer, what was done as it was asked, and one thing that can be done with it.

Nothing is wrong: what is wrong is the banner's. It goes by its cross, or by itself after a while in
which neither the mouse nor the keyboard was at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QFontMetricsF, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QSizePolicy, QWidget

from app.chat import strings
from app.controls.buttons.button import Button
from app.controls.buttons.icon_button import IconButton
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_margins, set_maximum_width, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import design_px, painter_on, px, ratio_of, width_of
from core.events import Message

SHOWN_MS = 20_000
WIDTH_PX = 752
_HEIGHT_PX = 36
_BOX_PX = 32


class NoticeBar(QWidget):
    """Hidden until `show_notice()`. One at a time, the newest."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._act: Callable[[], object] | None = None
        self._label = TextLabel(theme, "", 12, 16, "text")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.action_button = Button(theme, "", "link", True)
        self.close_button = IconButton(theme, "x", strings.CLOSE_NOTICE)
        row = QHBoxLayout(self)
        set_margins(row, 38, 0, 4, _HEIGHT_PX - _BOX_PX)
        set_spacing(row, 4)
        row.addWidget(self._label, 1)
        row.addWidget(self.action_button)
        row.addWidget(self.close_button)
        set_fixed_height(self, _HEIGHT_PX)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._timer = QTimer(self, interval=SHOWN_MS, singleShot=True)
        self._timer.timeout.connect(self._time_is_over)
        self.action_button.clicked.connect(self._acted)
        self.close_button.clicked.connect(self.clear)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self._elide)
        self.hide()

    @property
    def text(self) -> str:
        """What it says, in full; empty while hidden."""
        return self._text

    def set_time_ms(self, time_ms: int) -> None:
        """How long it stays from the next time on."""
        self._timer.setInterval(time_ms)

    def show_notice(self, text: str, action: str = "", act: Callable[[], object] | None = None) -> None:
        """Say `text`; the button `action` does `act`."""
        self._text, self._act = text, act
        self.action_button.setText(action)
        self.action_button.setAccessibleName(action)
        self.action_button.setVisible(bool(action))
        self.action_button.updateGeometry()
        self._label.setToolTip(text)
        self.setAccessibleName(text)
        self.show()
        self._elide()
        self._timer.start()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def clear(self) -> None:
        """Nothing to say."""
        self._timer.stop()
        self._text, self._act = "", None
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, QRectF(0, 0, width_of(self), _BOX_PX), 9, self._theme.color("fill1"))
        icon = icon_pixmap("check", self._theme.color("text2"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(14, 9), icon)

    def _acted(self) -> None:
        if self._act:
            self._act()

    def _time_is_over(self) -> None:
        focus = QApplication.focusWidget()
        if self.underMouse() or (focus is not None and self.isAncestorOf(focus)):
            self._timer.start()
        else:
            self.clear()

    def _elide(self) -> None:
        button = self.action_button
        used = button.sizeHint().width() + 4 if button.text() else 0
        room = design_px(max(1, self.width() - px(42 + 4) - used - self.close_button.sizeHint().width()))
        metrics = QFontMetricsF(ui_font(12))
        self._label.setText(metrics.elidedText(self._text, Qt.TextElideMode.ElideMiddle, room))


_WIDTH_PX = 752


class OfferBar(QWidget):
    """Hidden until `show_offer()`."""

    answered = Signal(bool)  # True: download

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = TextLabel(theme, "", 12, 16, "text2", wrap=True)
        self.download_button = Button(theme, strings.DOWNLOAD, "link", True)
        self.later_button = Button(theme, strings.NOT_NOW, "link", True)
        self.download_button.clicked.connect(lambda: self.answered.emit(True))
        self.later_button.clicked.connect(lambda: self.answered.emit(False))
        row = QHBoxLayout(self)
        set_margins(row, 16, 6, 6, 0)
        set_spacing(row, 4)
        row.addWidget(self._label, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.download_button)
        row.addWidget(self.later_button)
        set_maximum_width(self, _WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    @property
    def text(self) -> str:
        """The offer; empty while hidden."""
        return self._label.text()

    def show_offer(self, text: str) -> None:
        """Show `text`; empty hides the bar."""
        self._label.setText(text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))


_EDITING_BAR_HEIGHT_PX = 36
_EDITING_BAR_BOX_PX = 32


class EditingBar(QWidget):
    """Hidden until `show_text()`."""

    cancel_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._label = TextLabel(theme, "", 12, 16, "text")
        self.cancel_button = Button(theme, strings.CANCEL, "link", True)
        self.cancel_button.clicked.connect(self.cancel_requested)
        row = QHBoxLayout(self)
        set_margins(row, 38, 0, 6, _EDITING_BAR_HEIGHT_PX - _EDITING_BAR_BOX_PX)
        row.addWidget(self._label, 1)
        row.addWidget(self.cancel_button)
        set_fixed_height(self, _EDITING_BAR_HEIGHT_PX)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """What it says."""
        return self._label.text()

    def show_text(self, text: str) -> None:
        """Say what sending will do."""
        self._label.setText(text)
        self.setAccessibleName(text)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = QRectF(0, 0, width_of(self), _EDITING_BAR_BOX_PX)
        draw_box(painter, box, 9, self._theme.color("accent_tint"))
        icon = icon_pixmap("edit", self._theme.color("accent"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(14, 9), icon)


_QUEUE_BAR_HEIGHT_PX = 36
_QUEUE_BAR_BOX_PX = 32


class QueueBar(QWidget):
    """Hidden while nothing waits."""

    remove_requested = Signal()  # the one that came last
    send_requested = Signal()  # the next one, now

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._label = TextLabel(theme, "", 12, 16, "text")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.remove_button = Button(theme, strings.REMOVE, "link", True)
        self.remove_button.clicked.connect(self.remove_requested)
        self.send_button = Button(theme, strings.SEND_NOW, "link", True)
        self.send_button.clicked.connect(self.send_requested)
        row = QHBoxLayout(self)
        set_margins(row, 38, 0, 6, _QUEUE_BAR_HEIGHT_PX - _QUEUE_BAR_BOX_PX)
        row.addWidget(self._label, 1)
        row.addWidget(self.send_button)
        row.addWidget(self.remove_button)
        set_fixed_height(self, _QUEUE_BAR_HEIGHT_PX)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self._elide)
        self.hide()

    @property
    def text(self) -> str:
        """What it says, in full."""
        return self._text

    def show_messages(self, messages: Sequence[Message], held: bool = False) -> None:
        """These wait, the first to be sent first; `held`: an answer broke off, a person has to send them."""
        texts = [_short(message) for message in messages]
        self._text = (strings.held(texts) if held else strings.queued(texts)) if texts else ""
        self.send_button.setVisible(held)
        self._elide()
        self.setAccessibleName(self._text)
        self.setVisible(bool(messages))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = QRectF(0, 0, width_of(self), _QUEUE_BAR_BOX_PX)
        draw_box(painter, box, 9, self._theme.color("fill1"))
        icon = icon_pixmap("send", self._theme.color("text2"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(14, 9), icon)

    def _elide(self) -> None:
        metrics = QFontMetricsF(ui_font(12))
        room = max(1.0, design_px(self._label.width()))
        self._label.setText(metrics.elidedText(self._text, Qt.TextElideMode.ElideRight, room))


def _short(message: Message) -> str:
    words = " ".join(message.content.split())
    return words or ", ".join(attachment.name for attachment in message.attachments)
