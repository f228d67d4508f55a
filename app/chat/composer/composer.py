"""Composer: where a message is written. Text, attachments, the context's ring, send and stop.

Three states. Idle: Return and the button send what is there. Busy: the button stops, Return
queues what is there as the next message. Blocked: nothing is sent, and `blocked_reason` says why. In all
of them one can write. It never clears itself: whoever takes a message calls `clear()`, so a message that is
refused is still there. Files that take long are read in the background, and nothing is sent
until they are there. It knows nothing of chats or of the worker: counts come by `show_tokens()`,
what does not fit by `show_fit()`, and long pastes are weighed by `weigh`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QMoveEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QVBoxLayout, QWidget

from app.chat.attachments.attachment_chip import AttachmentChip
from app.chat.attachments.attachment_preview import AttachmentPreview
from app.chat.attachments.chip_preview import ChipPreview
from app.chat.attachments.chip_row import ChipRow
from app.chat.attachments.chip_shelf import ChipShelf
from app.chat.attachments.file_intake import FileIntake
from app.chat.composer import strings
from app.chat.composer.composer_edit import ComposerEdit, SendKeys
from app.chat.composer.composer_fit import Remedy, Written, beginning, remedies
from app.chat.composer.composer_notice import ComposerNotice, Way
from app.chat.composer.composer_paste import SURELY_CHARACTERS, PasteWeigher, Weigh
from app.chat.composer.context_pill import ContextPill
from app.chat.composer.send_button import SendButton
from app.chat.composer.think_switch import ThinkSwitch
from app.controls.buttons.icon_button import IconButton
from app.controls.focus_ring import FocusRing
from app.controls.sheets import choose_folder, open_files
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_height, set_margins, set_maximum_width, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px
from core.errors import RequestError
from core.events import Attachment, Message
from core.events.text import well_formed_record

ComposerState = Literal["idle", "busy", "blocked"]

WIDTH_PX = 752
_RADIUS_PX = 14
# Of a pasted text's first line, which names it.
_NAME_CHARACTERS = 40


class Composer(QWidget):
    """The frame with everything in it."""

    message_submitted = Signal(object)  # events.Message
    message_queued = Signal(object)  # events.Message, to be sent when the answer under way has ended
    stop_requested = Signal()
    escaped = Signal()  # Escape in the field, while no preview is open
    draft_changed = Signal()
    attach_failed = Signal(object)  # RequestError
    new_chat_requested = Signal()  # with what is written
    folder_attached = Signal(object)  # FolderReading
    attachment_removed = Signal(object)  # Attachment, by a person, from its chip
    keep_requested = Signal(object)  # Attachment, to be kept in the library
    library_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._state: ComposerState = "idle"
        self._reason = ""
        self._dragging = False
        self._over_tokens = 0
        self._placeholder = strings.ASK_FIRST
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAcceptDrops(True)

        self.edit = ComposerEdit(theme, self)
        # Drops belong to the whole frame.
        self.edit.setAcceptDrops(False)
        self._notice = ComposerNotice(theme, self)
        self._notice_gap = QWidget(self)
        set_fixed_height(self._notice_gap, 10)
        self._notice_gap.setVisible(False)
        self._chips = ChipRow(theme, self)
        self._shelf = ChipShelf(theme, self._chips, self)
        self._intake = FileIntake(self._chips, self)
        self._preview = ChipPreview(theme, self._chips, self.edit, self)
        self._paste = PasteWeigher(self.edit, self._attach_pasted, self)
        self._attach = IconButton(theme, "plus", strings.ATTACH)
        self.think = ThinkSwitch(theme, self)
        self.pill = ContextPill(theme, self)
        self.send_button = SendButton(theme, self)
        self._lay_out()

        self.edit.textChanged.connect(self._changed)
        self.edit.send_requested.connect(self._submit)
        self.edit.escaped.connect(self._escape)
        self.edit.long_pasted.connect(self._paste.take)
        self.edit.files_dropped.connect(self.attach_files)
        self.edit.image_pasted.connect(self._refuse_image)
        # Qt's own slot: the field still tells of its focus while both are being destroyed.
        self.edit.focus_changed.connect(self.update)
        self._chips.changed.connect(self._changed)
        self._chips.removed.connect(self.attachment_removed)
        self._intake.failed.connect(self.attach_failed)
        self._intake.folder_read.connect(self.folder_attached)
        self._preview.keep_requested.connect(self.keep_requested)
        self._attach.clicked.connect(self._show_attach_menu)
        self.send_button.clicked.connect(self._button)
        theme.changed.connect(self.update)
        self._ring = FocusRing(self, theme, _RADIUS_PX, sources=[self.edit], with_mouse=True)
        self._show_state()

    # ---- what is written

    @property
    def text(self) -> str:
        """What is typed."""
        return self.edit.text

    def set_text(self, text: str) -> None:
        """Replace what is typed."""
        self.edit.set_text(text)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The documents beside it."""
        return self._chips.attachments

    @property
    def notice(self) -> ComposerNotice:
        """What is wrong with what is written, and the ways out."""
        return self._notice

    def attach(self, attachment: Attachment) -> None:
        """Add one document."""
        self._chips.add(well_formed_record(attachment))

    def attach_files(self, paths: Sequence[Path]) -> None:
        """Add files. Those that give no text are reported by `attach_failed`, all in one."""
        self._intake.add(paths)

    def choose_files(self) -> None:
        """Ask which files to attach."""
        open_files(self, strings.ATTACH_FILE, self.attach_files)

    def choose_folder(self) -> None:
        """Ask which folder's files to attach."""
        choose_folder(self, strings.ATTACH_FOLDER, lambda path: self.attach_files([path]))

    def show_text(self, title: str, note: str, text: str) -> None:
        """Something to read above the frame, as a document's preview is."""
        self._preview.show_text(Attachment(title, text), note)

    def attach_menu(self) -> QMenu:
        """Where documents come from; whoever shows it deletes it."""
        menu = QMenu(self)
        for title, act in (
            (strings.FROM_FILES, self.choose_files),
            (strings.FROM_FOLDER, self.choose_folder),
            (strings.FROM_LIBRARY, self.library_requested.emit),
        ):
            menu.addAction(title).triggered.connect(lambda checked=False, act=act: act())
        return menu

    def set_message(self, message: Message) -> None:
        """Put a whole message back, as if it had just been written."""
        self._empty()
        for attachment in message.attachments:
            self._chips.add(attachment)
        self.edit.set_text(message.content)

    def message(self) -> Message:
        """What is written now."""
        return well_formed_record(Message("user", self.text.strip(), self.attachments))

    def quote(self, text: str) -> None:
        """Quote `text` in the message; one of a document's length comes along as one."""
        if len(text) >= SURELY_CHARACTERS:
            self._attach_text(strings.QUOTED_TEXT, text)
            self.edit.setFocus()
        elif text.strip():
            self.edit.insert_quote(text)

    def clear(self) -> None:
        """Nothing written, nothing attached, nothing on its way."""
        self._empty()
        self.edit.set_text("")

    def show_tokens(self, count: Callable[[str], int | None]) -> None:
        """Write the chips' sizes in tokens, as far as `count` knows them."""
        self._chips.show_tokens(count)

    def show_embedding(self, fraction: Callable[[str], float | None]) -> None:
        """Show on the chips how much of each document is embedded; None: nothing to show."""
        self._chips.show_embedding(fraction)

    def show_fit(self, written: Written, refused_by_tokens: int = 0) -> None:
        """Say by how much the message is too long and what can be done; nothing if it fits.

        `refused_by_tokens` is what the worker found to be too much, if it has been asked.
        """
        over = refused_by_tokens or written.over_tokens
        text = strings.over_limit(over, written.limit_tokens) if over else ""
        self._notice.show_notice(text, [self._way(one) for one in remedies(written, refused_by_tokens)])
        self._notice_gap.setVisible(bool(text))
        self._over_tokens = over
        self._show_state()

    def set_weigh(self, weigh: Weigh | None) -> None:
        """Who counts the tokens of a long paste; None leaves it to an estimate."""
        self._paste.set_weigh(weigh)

    def set_send_keys(self, keys: SendKeys) -> None:
        """Whether Return sends, or ⌘Return, which leaves Return to break the line."""
        self.edit.set_send_keys(keys)

    # ---- states

    @property
    def state(self) -> ComposerState:
        """Which of the three."""
        return self._state

    @property
    def blocked_reason(self) -> str:
        """Why nothing can be sent; empty unless blocked."""
        return self._reason

    def set_idle(self) -> None:
        """Messages can be sent."""
        self._set_state("idle", "")

    def set_busy(self) -> None:
        """An answer is written; the button stops it."""
        self._set_state("busy", "")

    def set_blocked(self, reason: str) -> None:
        """Nothing can be sent because of `reason`."""
        self._set_state("blocked", reason)

    def set_placeholder(self, text: str) -> None:
        """Shown while nothing is typed; while an answer is written, that the next message waits for it."""
        self._placeholder = text
        self._show_placeholder()

    # ---- inside

    def _show_placeholder(self) -> None:
        self.edit.set_placeholder(strings.ASK_QUEUED if self._state == "busy" else self._placeholder)

    def _set_state(self, state: ComposerState, reason: str) -> None:
        self._state, self._reason = state, reason
        self._show_placeholder()
        self._show_state()

    def _show_state(self) -> None:
        self.send_button.set_stops(self._state == "busy")
        self.send_button.setEnabled(self._state == "busy" or self._can_send())
        files = self._chips.files
        reason = self._reason or (strings.reading_first(files[0].text()) if files else "")
        reason = reason or (self._notice.text if self._over_tokens else "")
        self.send_button.setAccessibleDescription(reason)
        self.send_button.setToolTip(reason or self.send_button.accessibleName())

    def _can_send(self) -> bool:
        return self._state == "idle" and self._is_whole()

    def _is_whole(self) -> bool:
        """Whether there is a message, and all of it is there and fits."""
        written = bool(self.text.strip() or self.attachments)
        return written and not self._over_tokens and not self._chips.files and not self._paste.busy

    def _submit(self) -> None:
        if self._can_send():
            self.message_submitted.emit(self.message())
        elif self._state == "busy" and self._is_whole():
            self.message_queued.emit(self.message())

    def _escape(self) -> None:
        if self._preview.is_open:
            self._preview.close()
        else:
            self.escaped.emit()

    def _button(self) -> None:
        if self._state == "busy":
            self.stop_requested.emit()
        else:
            self._submit()

    def _show_attach_menu(self) -> None:
        menu = self.attach_menu()
        menu.aboutToHide.connect(menu.deleteLater)
        # Above its button: below it the window ends.
        corner = self._attach.mapToGlobal(QPoint(0, 0))
        menu.popup(corner - QPoint(0, menu.sizeHint().height() + 2))

    def _changed(self) -> None:
        self._preview.keep()
        self._show_state()
        self.draft_changed.emit()

    def _empty(self) -> None:
        self._intake.cancel()
        self._paste.cancel()
        self._chips.clear()
        self._notice.show_notice("", ())
        self._notice_gap.setVisible(False)
        self._over_tokens = 0

    # ---- pastes

    def _attach_pasted(self, text: str) -> None:
        self._attach_text(_first_line(text) or strings.PASTED_TEXT, text)

    def _attach_text(self, kind: str, text: str) -> None:
        taken = {attachment.name for attachment in self.attachments}
        number, name = 1, kind
        while name in taken:
            number += 1
            name = strings.numbered(kind, number)
        self.attach(Attachment(name, text))

    # ---- what does not fit

    def _way(self, remedy: Remedy) -> Way:
        if remedy.action == "new_chat":
            return strings.WAY_NEW_CHAT, self.new_chat_requested.emit
        chip = self._chips.chips[remedy.attachment]
        if remedy.action == "remove":
            return strings.way_remove(chip.text(), remedy.tokens), lambda: self._remove(chip)
        label = strings.way_shorten(chip.text(), remedy.tokens)
        return label, lambda: self._shorten(chip, remedy.tokens)

    def _remove(self, chip: AttachmentChip) -> None:
        self._chips.remove(chip)
        self.edit.setFocus()

    def _shorten(self, chip: AttachmentChip, kept_tokens: int) -> None:
        attachment = chip.attachment
        text = beginning(attachment.text, chip.tokens or 0, kept_tokens)
        self._chips.replace(chip, Attachment(strings.beginning_of(attachment.name), text))
        self.edit.setFocus()

    # ---- preview

    @property
    def preview(self) -> AttachmentPreview | None:
        """The preview, once there was one."""
        return self._preview.popup

    def moveEvent(self, event: QMoveEvent) -> None:
        self._preview.place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._preview.place()

    def _lay_out(self) -> None:
        tools = QHBoxLayout()
        # The tools hang 8 px out to the left of the text.
        set_margins(tools, 0, 8, 0, 0)
        set_spacing(tools, 4)
        tools.addWidget(self._attach)
        tools.addWidget(self.think)
        tools.addStretch(1)
        tools.addWidget(self.pill)
        tools.addWidget(self.send_button)
        text = QVBoxLayout()
        set_margins(text, 8, 0, 6, 0)
        text.setSpacing(0)
        text.addWidget(self.edit)
        chips = QVBoxLayout()
        set_margins(chips, 2, 0, 6, 0)
        chips.addWidget(self._shelf)
        column = QVBoxLayout(self)
        set_margins(column, 9, 12, 11, 10)
        column.setSpacing(0)
        notice = QVBoxLayout()
        notice.setContentsMargins(0, 0, 0, 0)
        notice.setSpacing(0)
        notice.addWidget(self._notice)
        notice.addWidget(self._notice_gap)
        column.addLayout(notice)
        column.addLayout(chips)
        self._chip_gap = QWidget(self)
        set_fixed_height(self._chip_gap, 10)
        self._chip_gap.setVisible(False)
        column.addWidget(self._chip_gap)
        column.addLayout(text)
        column.addLayout(tools)
        self._chips.changed.connect(lambda: self._chip_gap.setVisible(bool(self.attachments)))
        QWidget.setTabOrder(self.edit, self._attach)
        QWidget.setTabOrder(self._attach, self.think.switch)
        QWidget.setTabOrder(self.think.switch, self.send_button)

    def sizeHint(self) -> QSize:
        return QSize(px(WIDTH_PX), super().sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = area_of(self)
        border = QPen(theme.color("accent_mid" if self.edit.hasFocus() else "hair2"), 1)
        painter.setBrush(theme.color("raised"))
        if self._dragging:
            border = QPen(theme.color("accent"), 1.5, Qt.PenStyle.DashLine)
            painter.setBrush(theme.color("accent_tint"))
        painter.setPen(border)
        painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS_PX - 0.5, _RADIUS_PX - 0.5)
        if self._dragging:
            painter.setFont(ui_font(13, 500))
            painter.setPen(theme.color("accent"))
            row = QRectF(frame.left(), frame.bottom() - 38, frame.width(), 28)
            painter.drawText(row, int(Qt.AlignmentFlag.AlignCenter), strings.DROP_TO_ATTACH)
        painter.end()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        # A picture without a file is accepted to be refused with the reason.
        if event.mimeData().hasUrls() or event.mimeData().hasText() or event.mimeData().hasImage():
            event.acceptProposedAction()
            self._set_dragging(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._set_dragging(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._set_dragging(False)
        self.edit.insertFromMimeData(event.mimeData())
        event.acceptProposedAction()

    def _refuse_image(self) -> None:
        self.attach_failed.emit(RequestError(strings.NO_IMAGES, strings.NO_IMAGES_HINT))

    def _set_dragging(self, dragging: bool) -> None:
        self._dragging = dragging
        self.pill.setVisible(not dragging and self.pill.limit_tokens > 0)
        self.update()


def _first_line(text: str) -> str:
    """The first words of a text, without the marks of a heading or a comment; empty if there are none."""
    line = next((line.strip(" \t#*/-=") for line in text.splitlines() if line.strip(" \t#*/-=")), "")
    words = " ".join(line.split())
    if len(words) <= _NAME_CHARACTERS:
        return words
    head = words[:_NAME_CHARACTERS]
    space = head.rfind(" ")
    return (head[:space] if space >= _NAME_CHARACTERS // 2 else head).rstrip(" ,;:.") + "…"
