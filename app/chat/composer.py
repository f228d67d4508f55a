"""Composer: the message field with its attachments, the context gauge, and Send or Stop.

It has four states. Idle: Return and the button send the message. Busy: the button stops the answer, Return
queues the message. Later: both queue it. Blocked: nothing is sent, for `blocked_reason`. Text can be typed in
all of them. The composer never clears itself, so that a refused message is not lost: the controller calls
`clear()`. Large files are read in the background, and nothing is sent until they are complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QPoint, QSize, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QVBoxLayout, QWidget

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip, RemovableChip
from app.chat.chip_row import ChipRow, FileIntake
from app.chat.composer_edit import ComposerEdit, is_document, is_longer_than_field, local_files
from app.chat.composer_tools import (
    ComposerNotice,
    ContextPill,
    MessageSize,
    NoticeAction,
    Remedy,
    SendButton,
    ThinkSwitch,
    beginning,
    remedies,
)
from app.chat.file_reader import PastedImage, Source
from app.chat.image_chip import ImageChip
from app.chat.intents import (
    EditMessage,
    Escape,
    MoveToNewChat,
    OpenAttachment,
    OpenImage,
    OpenLibrary,
    QueueMessage,
    SendMessage,
    StopAnswer,
)
from app.chat.tools.choice import ToolsButton
from app.controls.buttons import IconButton, on_click
from app.controls.sheets import choose_folder, open_files
from app.controls.text_label import TextLabel
from app.richtext.canvas_menu import pop_up
from app.session.chats.conversation import message_text, without_pages
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_margins,
    set_maximum_width,
)
from app.theme.sheet import set_ground
from app.theme.zoom import px
from core.chat_archives.reading import looks_like_chats
from core.errors import RequestError
from core.events import Attachment, Image, Message
from core.events.wire import well_formed_record

ComposerState = Literal["idle", "busy", "later", "blocked"]

WIDTH_PX = 752
_MARGINS_PX, _LOW_MARGINS_PX = (9, 12, 11, 10), (9, 7, 11, 6)
# Maximum length of a name made from the first line of a pasted text.
_NAME_CHARACTERS = 40


class Composer(QWidget):
    """The framed widget. `draft_changed` is emitted for changes by the person and by the program."""

    intent = Signal(object)  # intents.Intent
    draft_changed = Signal()
    attach_failed = Signal(object)  # RequestError
    import_requested = Signal(object)  # paths of exported chats that were dropped or opened
    folder_attached = Signal(object)  # FolderReading
    attachment_removed = Signal(object)  # Attachment that the person removed, shortened or had read again

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state: ComposerState = "idle"
        self.blocked_reason = ""
        self._dragging = False
        self._over_tokens = 0
        self._fit: tuple[str, tuple[NoticeAction, ...]] = ("", ())  # the notice about the size
        self._unseen, self._seeing = "", ""  # why images are not seen, and the progress of the remedy
        self._eyes: tuple[NoticeAction, ...] = ()
        self._low = False
        self._placeholder = strings.ASK_FIRST
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAcceptDrops(True)

        self.edit = ComposerEdit(self, self)
        # The whole frame accepts drops.
        self.edit.setAcceptDrops(False)
        self.notice = ComposerNotice(self)
        self._notice_gap = QWidget(self)
        set_fixed_height(self._notice_gap, 10)
        self._notice_gap.setVisible(False)
        self.chips = ChipRow(self.attachment_removed.emit, self)
        self._intake = FileIntake(self.chips, self.attach_failed.emit, self.folder_attached.emit, self)
        self.chips.open = lambda chip: self.intent.emit(OpenAttachment("", self.chips.chips.index(chip)))
        self.chips.open_image = self._open_image
        self._attach = IconButton("plus", strings.ATTACH)
        self.think = ThinkSwitch(self)
        self.tools = ToolsButton(self.edit.setFocus, self)
        self.pill = ContextPill(self)
        self.send_button = SendButton(self)
        self._drop = TextLabel("", 13, 18, "accent", weight=500, parent=self)
        self._drop.hide()
        self._lay_out()

        self.edit.textChanged.connect(self._changed)
        # Qt's own slot, because the field emits this also while both are being destroyed.
        self.edit.focus_changed.connect(self._show_frame)
        self.chips.changed.connect(self._changed)
        on_click((self._attach, self._show_attach_menu), (self.send_button, self._click_button))
        self._show_state()
        self._show_frame()

    # ---- content

    @property
    def text(self) -> str:
        """The typed text."""
        return self.edit.text

    def set_text(self, text: str) -> None:
        self.edit.set_text(text)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return self.chips.attachments

    def attach(self, attachment: Attachment) -> None:
        self.chips.add(well_formed_record(attachment))

    @property
    def images(self) -> tuple[Image, ...]:
        """The attached images, which come before the text."""
        return tuple(replace(image, at=0) for image in self.chips.images)

    def attach_files(self, sources: Sequence[Source]) -> None:
        """Attach files, folders and pasted images. Failures are emitted together as one `attach_failed`, but
        those of images are shown on their chips.
        """
        self._intake.add(sources)

    def take_files(self, paths: Sequence[Path]) -> None:
        """Attach files and folders that were dropped or opened, and have exported chats imported."""
        exports = [path for path in paths if looks_like_chats(path)]
        if others := [path for path in paths if path not in exports]:
            self.attach_files(others)
        if exports:
            self.import_requested.emit(exports)

    def choose_files(self) -> None:
        open_files(self, strings.ATTACH_FILE, self.attach_files)

    def choose_folder(self) -> None:
        choose_folder(self, strings.ATTACH_FOLDER, lambda path: self.attach_files([path]))

    def attach_menu(self) -> QMenu:
        """The menu of the attach button. The caller deletes it."""
        menu = QMenu(self)
        for title, act in (
            (strings.FROM_FILES, self.choose_files),
            (strings.FROM_FOLDER, self.choose_folder),
            (strings.FROM_LIBRARY, lambda: self.intent.emit(OpenLibrary())),
        ):
            menu.addAction(title, act)
        return menu

    @property
    def draft(self) -> Message:
        """The written text and the attachments, unchanged."""
        return Message("user", self.text, self.attachments, images=self.images)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written or attached, and no file is being read."""
        return not (self.text or self.attachments or self.chips.files or self.chips.image_chips)

    def set_sees(self, sees: bool) -> None:
        """Accept PDFs of scanned pages alone, or refuse them because the model does not see."""
        self._intake.reader.takes_scans = sees

    def set_message(self, message: Message, sources: Sequence[Source] = ()) -> None:
        """Replace the draft by `message` and `sources`, which are read. Images of documents' pages are left
        out: they are chosen when it is sent.
        """
        self._intake.cancel()
        self._over_tokens, self._fit = 0, ("", ())
        self.chips.clear()
        for attachment in message.attachments:
            self.chips.add(attachment)
        for image in without_pages(message).images:
            self.chips.add_image(image)
        self.edit.set_text(message.content)
        self.attach_files(sources)
        self._show_notice()

    def message(self) -> Message:
        """The draft as it is sent."""
        message = Message("user", message_text(self.text), self.attachments, images=self.images)
        return well_formed_record(message)

    def quote(self, text: str) -> None:
        """Quote `text` in the message; attach it as a document if it is long."""
        if not text.strip():
            return
        if is_document(text) or is_longer_than_field(self.text + text):
            self._attach_text(strings.QUOTED_TEXT, text)
            self.edit.setFocus()
        else:
            self.edit.insert_quote(text)

    def clear(self) -> None:
        """Remove the text and the attachments, and cancel files that are being read."""
        self.set_message(Message("user", ""))

    def show_fit(self, written: MessageSize, refused_by_tokens: int = 0) -> None:
        """Show by how many tokens the message is too long, with remedies; hide the notice if it fits.

        `refused_by_tokens` is the excess reported by the worker, 0 if there was none.
        """
        over = refused_by_tokens or written.over_tokens
        if not (over or self._over_tokens):
            return
        exact = written.exact or bool(refused_by_tokens)
        text = strings.over_limit(over, written.limit_tokens, exact=exact) if over else ""
        actions = [self._notice_action(remedy) for remedy in remedies(written, refused_by_tokens)]
        self._over_tokens, self._fit = over, (text, tuple(actions))
        self._show_notice()
        self._show_state()

    def show_eyes(self, unseen: str, offers: Sequence[NoticeAction] = (), progress: str = "") -> None:
        """Show on attached images why the loaded model does not see them; `unseen` is empty if it does, or if
        none is loaded. `offers` lead to a model that sees, `progress` says which one is loading.
        """
        self._unseen, self._seeing, self._eyes = unseen, progress, tuple(offers)
        self.chips.show_unseen(unseen)
        self._show_notice()
        self._show_state()

    # ---- states

    def set_state(self, state: ComposerState, reason: str = "") -> None:
        """`reason` says why messages are queued, or nothing is sent."""
        self.state, self.blocked_reason = state, reason
        self._show_placeholder()
        self._show_state()

    def set_placeholder(self, text: str) -> None:
        """Sets the placeholder. The busy state has its own."""
        self._placeholder = text
        self._show_placeholder()

    # ---- input of the field, for `ComposerEdit`

    def submit(self) -> None:
        """Send the message, or queue it until it can be sent."""
        if not self._can_send():
            return
        sends = SendMessage if self.state == "idle" else QueueMessage
        self.intent.emit(sends(self.message()))

    def escape(self) -> None:
        self.intent.emit(Escape())

    def edit_last(self) -> None:
        """Edit the last sent message, unless there is a draft."""
        if self.is_empty:
            self.intent.emit(EditMessage())

    def attach_pasted(self, text: str) -> None:
        """Attach a long pasted text."""
        self._attach_text(_first_line(text) or strings.PASTED_TEXT, text)

    def take_image(self, data: bytes, ending: str) -> None:
        """Attach the bytes of an image that has no file; `ending` is that of its format."""
        taken = {chip.name for chip in (*self.chips.image_chips, *self.chips.files)}
        number, name = 1, strings.PASTED_IMAGE + ending
        while name in taken:
            number += 1
            name = strings.numbered(strings.PASTED_IMAGE, number) + ending
        self.attach_files([PastedImage(name, data)])

    def say_images_left(self, count: int) -> None:
        """Say that a text was pasted without the images between its words."""
        self.attach_failed.emit(RequestError(strings.images_left(count), strings.IMAGES_LEFT_HINT))

    # ---- inside

    def _open_image(self, chip: ImageChip) -> None:
        if chip.image is not None:
            opened = [each for each in self.chips.image_chips if each.image]
            self.intent.emit(OpenImage(self.images, opened.index(chip)))

    @property
    def _not_sendable(self) -> str:
        """Why the images or scans cannot be sent; empty if they can, or without any."""
        if refused := self.chips.refused:
            return strings.remove_first(refused[0].name)
        return self._unseen

    def _show_notice(self) -> None:
        """Show what prevents sending: a refused file, images that the model does not see, or the size."""
        text, actions = self._fit
        if refused := self.chips.refused:
            text = " ".join(dict.fromkeys(chip.refused[1].message for chip in refused if chip.refused))
            hints = dict.fromkeys(chip.refused[1].hint for chip in refused if chip.refused)
            text = " ".join((text, *filter(None, hints)))
            actions = ((_remove(len(refused)), self._remove_refused),)
        elif self._unseen:
            text = f"{self._unseen} {self._seeing}".strip()
            images = self.chips.images
            actions = (*self._eyes, *([(_remove(len(images)), self._remove_images)] if images else []))
        self.notice.show_notice(text, actions)
        self._notice_gap.setVisible(bool(text))

    def _remove_refused(self) -> None:
        for chip in self.chips.refused:
            self.chips.remove(chip)
        self.edit.setFocus()

    def _remove_images(self) -> None:
        for chip in self.chips.image_chips:
            self.chips.remove(chip)
        self.edit.setFocus()

    def _show_placeholder(self) -> None:
        self.edit.setPlaceholderText(strings.ASK_QUEUED if self.state == "busy" else self._placeholder)

    def _show_state(self) -> None:
        self.send_button.set_stops(self.state == "busy")
        self.send_button.setEnabled(self.state == "busy" or self._can_send())
        files = self.chips.files
        reason = self.blocked_reason or (strings.reading_first(files[0].name) if files else "")
        reason = reason or self._not_sendable
        reason = reason or (self.notice.text if self._over_tokens else "")
        self.send_button.setAccessibleDescription(reason)
        self.send_button.setToolTip(reason or self.send_button.accessibleName())

    def _can_send(self) -> bool:
        """Whether there is a message, it is complete, and neither it nor the state prevents sending."""
        has_content = bool(self.text.strip() or self.attachments or self.chips.images)
        prevented = self._over_tokens or self.chips.files or self._not_sendable
        return has_content and not (prevented or self.state == "blocked")

    def _click_button(self) -> None:
        if self.state == "busy":
            self.intent.emit(StopAnswer())
        else:
            self.submit()
        self.edit.setFocus()

    def _show_attach_menu(self) -> None:
        menu = self.attach_menu()
        # Above the button, which is at the lower end of the window.
        pop_up(menu, self._attach.mapToGlobal(QPoint(0, -menu.sizeHint().height() - 2)))

    def _changed(self) -> None:
        self.chips.show_unseen(self._unseen)
        self._show_notice()
        self._show_state()
        self.draft_changed.emit()

    def _attach_text(self, kind: str, text: str) -> None:
        taken = {attachment.name for attachment in self.attachments}
        number, name = 1, kind
        while name in taken:
            number += 1
            name = strings.numbered(kind, number)
        self.attach(Attachment(name, text))

    # ---- remedies

    def _notice_action(self, remedy: Remedy) -> NoticeAction:
        if remedy.action == "new_chat":
            return strings.WAY_NEW_CHAT, lambda: self.intent.emit(MoveToNewChat())
        chips = (*self.chips.chips, *(each for each in self.chips.image_chips if each.image))
        chip = chips[remedy.attachment]
        name = chip.name if len(chips) > 1 or isinstance(chip, ImageChip) else ""
        if remedy.action == "remove" or not isinstance(chip, AttachmentChip):
            return strings.way_remove(name, remedy.tokens), lambda: self._remove(chip)
        label = strings.way_shorten(name, remedy.tokens)
        return label, lambda: self._shorten(chip, remedy.tokens)

    def _remove(self, chip: RemovableChip) -> None:
        if chip in (*self.chips.chips, *self.chips.image_chips):  # not a second click
            self.chips.take_out(chip)
        self.edit.setFocus()

    def _shorten(self, chip: AttachmentChip, kept_tokens: int) -> None:
        if chip not in self.chips.chips:
            return
        attachment = chip.attachment
        text = beginning(attachment.text, chip.tokens or 0, kept_tokens)
        name = strings.beginning_of(attachment.name)
        self.chips.replace(chip, replace(attachment, name=name, text=text, tokens=0))
        self.edit.setFocus()

    def _lay_out(self) -> None:
        # The tools are outdented by 8 px to the left of the text.
        tools = self._tools = row_of(
            *(
                self._attach,
                self.think,
                self.tools,
                STRETCH,
                self._drop,
                STRETCH,
                self.pill,
                self.send_button,
            ),
            gap=4,
            margins=(0, 8, 0, 0),
        )
        text = column_of(self.edit, margins=(8, 0, 6, 0))
        chips = column_of(self.chips, 2, margins=(2, 0, 6, 0))
        column = self._column = QVBoxLayout(self)
        set_margins(column, *_MARGINS_PX)
        column.setSpacing(0)
        notice = column_of(self.notice, self._notice_gap)
        column.addLayout(notice)
        column.addLayout(chips)
        column.addLayout(text)
        column.addLayout(tools)

    @property
    def full_height_px(self) -> int:
        """The height with the usual margins, in screen pixels."""
        missing = sum(_MARGINS_PX[1::2]) - sum(_LOW_MARGINS_PX[1::2]) if self._low else 0
        return self.sizeHint().height() + px(missing)

    def set_low(self, low: bool) -> None:
        """Use smaller margins, or the usual ones."""
        if low != self._low:
            self._low = low
            set_margins(self._column, *(_LOW_MARGINS_PX if low else _MARGINS_PX))

    def add_tool(self, tool: QWidget) -> None:
        """Place `tool` next to the tools' button."""
        self._tools.insertWidget(self._tools.indexOf(self.tools) + 1, tool)

    def sizeHint(self) -> QSize:
        return QSize(px(WIDTH_PX), super().sizeHint().height())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self.edit.canInsertFromMimeData(event.mimeData()):
            event.acceptProposedAction()
            self.show_drag(event.mimeData())

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.end_drag()

    def dropEvent(self, event: QDropEvent) -> None:
        self.end_drag()
        self.edit.take(event.mimeData(), dragged=True)
        event.acceptProposedAction()

    def show_drag(self, dragged: QMimeData) -> None:
        """Show that `dragged` can be dropped here, or on the window."""
        paths = local_files(dragged)
        is_import = bool(paths) and all(looks_like_chats(path) for path in paths)
        self._drop.setText(strings.DROP_TO_IMPORT if is_import else strings.DROP_TO_ATTACH)
        self._set_dragging(True)

    def end_drag(self) -> None:
        self._set_dragging(False)

    def _set_dragging(self, dragging: bool) -> None:
        self._dragging = dragging
        self._drop.setVisible(dragging)
        self.pill.setVisible(not dragging and self.pill.has_figures)
        self._show_frame()

    def _show_frame(self) -> None:
        focused = self.edit.hasFocus()
        set_ground(self, "field-drop" if self._dragging else "field-focus" if focused else "field")


def _first_line(text: str) -> str:
    """The first words of a text, without heading or comment marks; empty if it has none."""
    line = next((line.strip(" \t#*/-=") for line in text.splitlines() if line.strip(" \t#*/-=")), "")
    words = " ".join(line.split())
    if len(words) <= _NAME_CHARACTERS:
        return words
    head = words[:_NAME_CHARACTERS]
    space = head.rfind(" ")
    return (head[:space] if space >= _NAME_CHARACTERS // 2 else head).rstrip(" ,;:.") + "…"


def _remove(count: int) -> str:
    return strings.REMOVE_IMAGE if count == 1 else strings.REMOVE_IMAGES
