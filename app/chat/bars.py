"""Messages around the conversation: a problem's banner, and one-line bars at the composer.

The banner shows one `Trouble` at a time: title, text, the button of its remedy, and log lines on request; of
several, also its number. The controller handles the signals and then shows another problem or hides it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QPlainTextEdit,
    QSizePolicy,
    QSpacerItem,
    QWidget,
)

from app.chat import strings
from app.chat.intents import CancelEdit, EditQueued, Intent, RemoveQueued, SendQueued
from app.controls.buttons import Button, IconButton, IconLabel, on_click
from app.controls.scroll_bar import ScrollPage
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.session.chats.conversation import attached_names
from app.session.trouble import Trouble
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_margins,
    set_maximum_width,
    set_mono_font,
)
from app.theme.sheet import set_ground
from app.theme.theme import theme
from app.theme.zoom import px
from core.events import Message

SHOWN_MS = 20_000
WIDTH_PX = 752  # as the composer
_HEIGHT_PX = 36
_BOX_PX = 32


class _Bar(QWidget):
    """An icon, an elided text and buttons in a box. Hidden until it has a text."""

    def __init__(
        self,
        icon: str,
        parent: QWidget | None,
        *,
        ground: str = "bar",
        ink: str = "text2",
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        """`ink` is the palette token of the icon."""
        super().__init__(parent)
        set_ground(self, ground)
        self.icon = IconLabel(icon, ink)
        self._label = TextLabel("", 12, 16, "text", elide=elide)
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._row = row_of(
            *(self.icon, 6, (self._label, 1)),
            gap=4,
            margins=(14, 0, 4, _HEIGHT_PX - _BOX_PX),
            parent=self,
        )
        set_fixed_height(self, _HEIGHT_PX)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    @property
    def text(self) -> str:
        """The whole text; empty while hidden."""
        return self._label.text()

    def _show_text(self, text: str, announce: bool = True) -> None:
        """Show `text`, and have it read aloud if `announce`; empty hides the bar."""
        self._label.setText(text)
        self._label.setToolTip(in_own_direction(text))
        self.setAccessibleName(text)
        self.setVisible(bool(text))
        if text and announce:
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))


# Kind of a notice: a completed action, information, or a failure or something missing.
NoticeKind = Literal["done", "info", "warning"]
_NOTICE_ICONS: dict[NoticeKind, tuple[str, str]] = {
    "done": ("check", "text2"),
    "info": ("info", "text2"),
    "warning": ("warn", "danger"),
}


class NoticeBar(_Bar):
    """A one-line notice and a button for the next step. Failures of the worker or the store are the banner's.

    Shows the newest notice only. Hides after 20 s, but not while the mouse or the focus is on it.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        # The text ends with a file's name.
        super().__init__("info", parent, elide=Qt.TextElideMode.ElideMiddle)
        self._act: Callable[[], object] | None = None
        self.action_button = Button("", "link", True)
        self.close_button = IconButton("x", strings.CLOSE_NOTICE)
        self._row.addWidget(self.action_button)
        self._row.addWidget(self.close_button)
        self._timer = QTimer(self, interval=SHOWN_MS, singleShot=True)
        self._timer.timeout.connect(self._on_timeout)
        on_click((self.action_button, self._run_action), (self.close_button, self.clear))

    def set_time_ms(self, time_ms: int) -> None:
        """Sets how long the next notices are shown."""
        self._timer.setInterval(time_ms)

    def show_notice(
        self,
        text: str,
        action: str = "",
        act: Callable[[], object] | None = None,
        *,
        kind: NoticeKind = "info",
        announce: bool = True,
    ) -> None:
        """Show `text` with the icon of its `kind`, read aloud if `announce`; a button with the label `action`
        calls `act`.
        """
        self._act = act
        self.icon.show_icon(*_NOTICE_ICONS[kind])
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

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("edit", parent, ground="accent", ink="accent")
        self.cancel_button = Button(strings.CANCEL, "link", True)
        self._row.addWidget(self.cancel_button)
        self.cancel_button.clicked.connect(lambda: self.intent.emit(CancelEdit()))

    def show_text(self, text: str) -> None:
        """Say what sending will do."""
        self._show_text(text)


_QUEUE_ROWS = 4  # more are scrolled
_FOLDED_ROWS = 2  # in a low window, opened by the person
_QUEUE_SETTINGS_PX = 180
_QUEUE_ROW_PX = 28


class QueueList(QWidget):
    """The messages of the chat that wait to be sent, the next one first, each with Edit and Remove.

    Hidden while there are none. In a low window it is folded: `fold_button`, which is placed in the composer,
    names their number and opens it.
    """

    intent = Signal(object)  # intents.SendQueued, EditQueued or RemoveQueued

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "bar")
        self._messages: tuple[Message, ...] = ()
        self._changes: tuple[tuple[str, ...], ...] = ()
        self.rows: tuple[QueueRow, ...] = ()
        self._title = TextLabel("", 12, 16, "text2", elide=Qt.TextElideMode.ElideRight)
        self._title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.send_button = Button(strings.SEND_NOW, "link", True)
        self.send_button.clicked.connect(lambda: self.intent.emit(SendQueued()))
        page = QWidget()
        self._rows = column_of(parent=page)
        self._page = ScrollPage(page)
        head = row_of((self._title, 1), self.send_button, gap=4)
        column_of(head, self._page, gap=2, margins=(14, 6, 4, 8), parent=self)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(strings.QUEUE_NAME)
        self._folded = False
        self.fold_button = Button("", "link", True)
        self.fold_button.setCheckable(True)
        self.fold_button.clicked.connect(self._fit)
        theme.zoomed.connect(self._fit)
        self._fit()

    @property
    def full_height_px(self) -> int:
        """The height when it is not folded, in screen pixels."""
        missing = min(_QUEUE_ROWS, len(self.rows)) * px(_QUEUE_ROW_PX) - self._page.minimumHeight()
        return self.sizeHint().height() + missing

    def set_folded(self, folded: bool) -> None:
        """Fold the list, or show it whenever there are messages."""
        if folded != self._folded:
            self._folded = folded
            self.fold_button.setChecked(False)
            self._fit()

    @property
    def text(self) -> str:
        """When the messages are sent; empty while hidden."""
        return self._title.text() if self._messages else ""

    def show_messages(
        self,
        messages: Sequence[Message],
        when: str,
        changes: Sequence[Sequence[str]] = (),
        *,
        offered: bool,
        can_send: bool,
    ) -> None:
        """Show the queued `messages` in sending order; `when` says when they are sent, or why not.

        `changes` are the settings of each that differ from the chat's. `offered`: the button sends the first
        one now; `can_send` enables it.
        """
        self._title.setText(when)
        self._title.setToolTip(when)
        also: tuple[tuple[str, ...], ...] = tuple(map(tuple, changes)) or ((),) * len(messages)
        if (tuple(messages), also) != (self._messages, self._changes):
            self._messages, self._changes = tuple(messages), also
            for row in self.rows:
                self._rows.removeWidget(row)
                row.hide()
                row.deleteLater()
            made = [
                QueueRow(n, each, own, self.intent.emit)
                for n, (each, own) in enumerate(zip(messages, also, strict=True))
            ]
            self.rows = tuple(made)
            for row in made:
                self._rows.addWidget(row)
        self.send_button.setVisible(offered)
        self.send_button.setEnabled(can_send)
        held = offered and can_send
        self.fold_button.setText(strings.folded_queue(len(messages), held=held))
        self.fold_button.setAccessibleName(self.fold_button.text())
        self.fold_button.setAccessibleDescription(when)
        self.fold_button.setToolTip(when)
        self.fold_button.updateGeometry()
        self._fit()

    def _fit(self) -> None:
        most = _FOLDED_ROWS if self._folded else _QUEUE_ROWS
        self._page.setFixedHeight(px(_QUEUE_ROW_PX) * min(most, len(self.rows)))
        self.fold_button.setVisible(self._folded and bool(self._messages))
        self.setVisible(bool(self._messages) and (not self._folded or self.fold_button.isChecked()))


class QueueRow(QWidget):
    """A queued message in one line, and the settings `changes` that it is sent with, in place of the chat's.

    `act` gets `EditQueued` and `RemoveQueued`.
    """

    def __init__(
        self, index: int, message: Message, changes: Sequence[str], act: Callable[[Intent], object]
    ) -> None:
        super().__init__()
        label = TextLabel(_summary(message), 12, 16, "text", elide=Qt.TextElideMode.ElideRight)
        label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        label.setToolTip(in_own_direction(label.text()))
        self.text = label.text()
        self.settings = TextLabel(
            strings.queued_with(changes), 11, 16, "text2", elide=Qt.TextElideMode.ElideRight
        )
        set_maximum_width(self.settings, _QUEUE_SETTINGS_PX)
        self.settings.setToolTip("\n".join(changes))
        self.settings.setVisible(bool(changes))
        self.edit_button = Button(strings.EDIT_QUEUED, "link", True)
        self.remove_button = Button(strings.REMOVE, "link", True)
        on_click(
            (self.edit_button, lambda: act(EditQueued(index, message))),
            (self.remove_button, lambda: act(RemoveQueued(index, message))),
        )
        for button in (self.edit_button, self.remove_button):
            button.setAccessibleName(strings.about_queued(button.text(), index + 1))
        # The scroll bar lies over the right margin.
        parts = ((label, 1), self.settings, self.edit_button, self.remove_button)
        row_of(*parts, gap=4, margins=(0, 0, 10, 0), parent=self)
        set_fixed_height(self, _QUEUE_ROW_PX)


def _summary(message: Message) -> str:
    words = " ".join(message.content.split())
    return words or ", ".join(attached_names(message))


_LOG_LINES = 9
_LOG_GAP_PX = 8
# Margin above the box.
_ABOVE_PX = 12
_REMEDIES = {
    "restart": strings.RESTART_WORKER,
    "load": strings.TRY_AGAIN,
    "download": strings.DOWNLOAD_MODEL,
    "repair": strings.REPAIR_CHATS,
    "repair-incomplete": strings.REPAIR_INCOMPLETE,
    "restore": strings.RESTORE_CHATS,
    "tables": strings.OPEN_TABLES,
}


class Banner(QWidget):
    """Hidden until `show_trouble()`."""

    remedy_requested = Signal(str)  # trouble.Remedy

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "banner")
        self.trouble: Trouble | None = None  # None while hidden
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

        self._title = TextLabel("", 13.5, 18, "text", weight=600, wrap=True, parent=self)
        self._text = TextLabel("", 12.5, 18, "text", tabular=True, wrap=True, parent=self)
        self.remedy_button = Button(strings.RESTART_WORKER, "primary", True)
        self.smaller_button = Button("", small=True)
        self.details_button = Button(strings.DETAILS, "link", True)
        self.count_label = TextLabel("", 11, 16, tabular=True, parent=self)
        self.next_button = Button(strings.NEXT_TROUBLE, "link", True)
        self.close_button = IconButton("x", strings.CLOSE_BANNER)
        self._icon = IconLabel("warn", "danger", 16)
        self.log_view = QPlainTextEdit(self)
        self._prepare_log()
        self._lay_out()

        on_click(
            (self.remedy_button, self._choose_remedy),
            (self.smaller_button, lambda: self.remedy_requested.emit("smaller")),
            (self.details_button, self._toggle_details),
        )
        self.next_requested = self.next_button.clicked
        self.dismissed = self.close_button.clicked
        theme.zoomed.connect(self._fit)
        self.setVisible(False)

    def show_trouble(self, trouble: Trouble, number: int = 1, count: int = 1) -> None:
        """Show `trouble`, number `number` of `count`, and announce it to assistive technology."""
        self.trouble = trouble
        self._title.setText(trouble.title)
        self._text.setText(trouble.text)
        self._text.setVisible(bool(trouble.text))
        self.remedy_button.setVisible(bool(trouble.remedy))
        _relabel(self.remedy_button, _REMEDIES.get(trouble.remedy, ""))
        self.smaller_button.setVisible(bool(trouble.smaller_tokens))
        _relabel(self.smaller_button, strings.smaller_context(trouble.smaller_tokens))
        self.details_button.setVisible(bool(trouble.log))
        position = strings.trouble_count(number, count) if count > 1 else ""
        self.count_label.setText(position)
        for widget in (self.count_label, self.next_button):
            widget.setVisible(bool(position))
        # Without buttons, neither a row nor a margin above it.
        any_button = bool(trouble.remedy or trouble.smaller_tokens or trouble.log or position)
        set_margins(self._buttons, 0, 11 if any_button else 0, 0, 0)
        self.log_view.setPlainText("\n".join(trouble.log))
        lines = min(max(len(trouble.log), 2), _LOG_LINES)
        self.log_view.setFixedHeight(lines * self.log_view.fontMetrics().lineSpacing() + px(18))
        self._show_log(False)
        self.setAccessibleName(" ".join(part for part in (position, trouble.title, trouble.text) if part))
        self.setVisible(True)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def clear(self) -> None:
        self.trouble = None
        self.setVisible(False)

    def _choose_remedy(self) -> None:
        if self.trouble and self.trouble.remedy:
            self.remedy_requested.emit(self.trouble.remedy)

    def _toggle_details(self) -> None:
        self._show_log(self.log_view.isHidden())

    def _show_log(self, shown: bool) -> None:
        self.log_view.setVisible(shown)
        self._log_gap.changeSize(0, _LOG_GAP_PX if shown else 0, vData=QSizePolicy.Policy.Fixed)
        _relabel(self.details_button, strings.HIDE_DETAILS if shown else strings.DETAILS)
        if shown:
            bar = self.log_view.verticalScrollBar()
            bar.setValue(bar.maximum())  # to the newest lines
        self._fit()

    def _prepare_log(self) -> None:
        set_ground(self.log_view, "window")
        self.log_view.setReadOnly(True)
        self.log_view.setAccessibleName(strings.LOG_NAME)
        set_mono_font(self.log_view, 11)
        self.log_view.document().setDocumentMargin(px(5))
        self.log_view.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.log_view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.log_view.setTabChangesFocus(True)

    def _lay_out(self) -> None:
        buttons = self._buttons = row_of(
            self.remedy_button,
            self.smaller_button,
            self.details_button,
            STRETCH,
            self.count_label,
            self.next_button,
            gap=8,
        )
        # A spacer is not hidden together with a widget, so its size is changed.
        self._log_gap = QSpacerItem(0, 0, vData=QSizePolicy.Policy.Fixed)
        column = self._column = column_of(self._title, self._text, buttons, gap=2)
        column.addItem(self._log_gap)
        column.addWidget(self.log_view)
        self._row = row_of(
            *(self._icon, 5, (column, 1), self.close_button),
            gap=8,
            margins=(15, _ABOVE_PX + 13, 10, 14),
            parent=self,
        )
        for part in (self._icon, self.close_button):
            self._row.setAlignment(part, Qt.AlignmentFlag.AlignTop)

    def sizeHint(self) -> QSize:
        return QSize(px(WIDTH_PX), self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Sets the height of the wrapped text at this width; a layout would do that too late."""
        # Nested layouts cache their height for a width.
        for layout in (self._buttons, self._column, self._row):
            layout.invalidate()
        height = self._row.heightForWidth(self.width())
        if height != self.height():
            self.setFixedHeight(height)


def _relabel(button: Button, text: str) -> None:
    button.setText(text)
    button.setAccessibleName(text)
    button.updateGeometry()
