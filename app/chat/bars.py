"""One-line bars around the composer: a notice, the edited message, the queue, and the offer of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QFontMetricsF, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QSizePolicy, QWidget

from app.chat import strings
from app.chat.intents import CancelEdit, SendQueued, UnqueueLast
from app.controls.buttons import Button, IconButton
from app.controls.shapes import draw_box, in_own_direction
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_margins, set_maximum_width, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import design_px, painter_on, ratio_of, width_of
from core.events import Message

SHOWN_MS = 20_000
_WIDTH_PX = 752  # as the composer
_HEIGHT_PX = 36
_BOX_PX = 32


class _Bar(QWidget):
    """An icon, an elided text and buttons in a box. Hidden until it has a text."""

    def __init__(
        self,
        theme: Theme,
        icon: str,
        parent: QWidget | None,
        *,
        fill: str = "fill1",
        ink: str = "text2",
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        """`fill` and `ink` are the palette tokens of the box and the icon."""
        super().__init__(parent)
        self._theme = theme
        self._icon, self._fill, self._ink, self._elide_mode = icon, fill, ink, elide
        self._text = ""
        self._label = TextLabel(theme, "", 12, 16, "text")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        row = self._row = QHBoxLayout(self)
        set_margins(row, 38, 0, 4, _HEIGHT_PX - _BOX_PX)
        set_spacing(row, 4)
        row.addWidget(self._label, 1)
        set_fixed_height(self, _HEIGHT_PX)
        set_maximum_width(self, _WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.zoomed.connect(self._elide)
        self.hide()

    @property
    def text(self) -> str:
        """The whole text; empty while hidden."""
        return self._text

    def _show_text(self, text: str, announce: bool = True) -> None:
        """Show `text`, and have it read aloud if `announce`; empty hides the bar."""
        self._text = text
        self._label.setToolTip(in_own_direction(text))
        self.setAccessibleName(text)
        self.setVisible(bool(text))
        self._elide()
        if text and announce:
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def _elide(self) -> None:
        self._row.activate()  # the label's width depends on which buttons are shown
        width = max(1.0, design_px(self._label.width()))
        self._label.setText(QFontMetricsF(ui_font(12)).elidedText(self._text, self._elide_mode, width))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, QRectF(0, 0, width_of(self), _BOX_PX), 9, self._theme.color(self._fill))
        icon = icon_pixmap(self._icon, self._theme.color(self._ink), 14, ratio_of(self))
        painter.drawPixmap(QPointF(14, 9), icon)


class NoticeBar(_Bar):
    """The result of an action and a button for the next step. Failures are shown by the banner.

    Shows the newest notice only. Hides after 20 s, but not while the mouse or the focus is on it.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        # The text ends with a file's name.
        super().__init__(theme, "check", parent, elide=Qt.TextElideMode.ElideMiddle)
        self._act: Callable[[], object] | None = None
        self.action_button = Button(theme, "", "link", True)
        self.close_button = IconButton(theme, "x", strings.CLOSE_NOTICE)
        self._row.addWidget(self.action_button)
        self._row.addWidget(self.close_button)
        self._timer = QTimer(self, interval=SHOWN_MS, singleShot=True)
        self._timer.timeout.connect(self._on_timeout)
        self.action_button.clicked.connect(self._run_action)
        self.close_button.clicked.connect(self.clear)

    def set_time_ms(self, time_ms: int) -> None:
        """Sets how long the next notices are shown."""
        self._timer.setInterval(time_ms)

    def show_notice(
        self, text: str, action: str = "", act: Callable[[], object] | None = None, *, announce: bool = True
    ) -> None:
        """Show `text`, read aloud if `announce`; a button with the label `action` calls `act`."""
        self._act = act
        self.action_button.setText(action)
        self.action_button.setAccessibleName(action)
        self.action_button.setVisible(bool(action))
        self.action_button.updateGeometry()
        self._show_text(text, announce)
        self._timer.start()

    def clear(self) -> None:
        self._timer.stop()
        self._act = None
        self._show_text("")

    def _run_action(self) -> None:
        if self._act:
            self._act()

    def _on_timeout(self) -> None:
        focus = QApplication.focusWidget()
        if self.underMouse() or (focus is not None and self.isAncestorOf(focus)):
            self._timer.start()
        else:
            self.clear()


class EditingBar(_Bar):
    """Shown while the composer holds a sent message; cancels the edit."""

    intent = Signal(object)  # intents.CancelEdit

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "edit", parent, fill="accent_tint", ink="accent")
        self.cancel_button = Button(theme, strings.CANCEL, "link", True)
        self._row.addWidget(self.cancel_button)
        self.cancel_button.clicked.connect(lambda: self.intent.emit(CancelEdit()))

    def show_text(self, text: str) -> None:
        """Say what sending will do."""
        self._show_text(text)


class QueueBar(_Bar):
    """The messages that are sent when the current answer has ended."""

    intent = Signal(object)  # intents.UnqueueLast or SendQueued

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "send", parent)
        self.send_button = Button(theme, strings.SEND_NOW, "link", True)
        self.remove_button = Button(theme, strings.REMOVE, "link", True)
        self._row.addWidget(self.send_button)
        self._row.addWidget(self.remove_button)
        self.send_button.clicked.connect(lambda: self.intent.emit(SendQueued()))
        self.remove_button.clicked.connect(lambda: self.intent.emit(UnqueueLast()))

    def show_messages(self, messages: Sequence[Message], held: bool = False) -> None:
        """Show the queued `messages` in sending order.

        `held`: the last answer failed, so the next message is sent only by the button.
        """
        texts = [_summary(message) for message in messages]
        self.send_button.setVisible(held)
        text = (strings.held(texts) if held else strings.queued(texts)) if texts else ""
        self._show_text(text, announce=False)


class OfferBar(QWidget):
    """Offers the download of a larger model, under the composer. Hidden until `show_offer()`."""

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


def _summary(message: Message) -> str:
    words = " ".join(message.content.split())
    return words or ", ".join(attachment.name for attachment in message.attachments)
