"""ComposerEdit: the text field of the composer. Plain text; grows to eight lines, then scrolls.

Return sends and Shift+Return breaks the line; with the other `SendKeys`, ⌘Return sends and Return breaks the
line. Sending, Escape, files, images and long pastes are passed to the composer. Paste as Plain Text (⇧⌘V)
also inserts a text that is pasted as a document otherwise. No text makes the field longer than it can lay out
at once: it is attached, whether it is pasted, dropped, quoted or a draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QWidget

from app.chat import strings
from app.chat.attachment_chip import estimated_tokens
from app.chat.pasteboard import image_bytes, images_beside, is_image
from app.controls.keys import held
from app.controls.text_fields import text_of
from app.theme.measures import set_font
from app.theme.theme import clear_base, theme
from app.theme.zoom import px


def quote_lines(text: str) -> str:
    """`text` as a Markdown quote, without leading and trailing empty lines."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").splitlines())


def quote_between(text: str, before: str, after: str) -> tuple[str, str]:
    """The texts to insert before and after the cursor to quote `text` as a separate paragraph."""
    gap = "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    suffix = "\n\n" if after and not after.startswith("\n") else ""
    return f"{gap}{quote_lines(text)}\n\n", suffix


SendKeys = Literal["return", "command_return"]

_DOCUMENT_TOKENS = 2_000
_FONT_PX = 14.5
_LINE_PX = 21
_MIN_HEIGHT_PX = 24
_MAX_LINES = 8


def is_document(text: str) -> bool:
    """Whether a pasted or quoted text is long enough to be attached as a document."""
    return estimated_tokens(text) > _DOCUMENT_TOKENS


# Qt lays out all of the field's text at once, in up to 10 µs a character and 25 µs a line.
_MOST_CHARACTERS = 16_000
_MOST_LINES = 1_000


def is_longer_than_field(text: str) -> bool:
    """Whether the field does not hold `text`, which is attached instead."""
    return len(text) > _MOST_CHARACTERS or text.count("\n") >= _MOST_LINES


class Receiver(Protocol):
    """Handles the field's keys, drops and pastes."""

    def submit(self) -> None: ...
    def escape(self) -> None: ...
    def edit_last(self) -> None: ...
    def take_files(self, paths: Sequence[Path]) -> None: ...
    def take_image(self, data: bytes, ending: str) -> None: ...
    def attach_pasted(self, text: str) -> None: ...
    def say_images_left(self, count: int) -> None: ...


class ComposerEdit(QTextEdit):
    """The text field of a composer, which is its `receiver`. It never clears its text."""

    focus_changed = Signal(bool)  # True: it has the focus

    def __init__(self, receiver: Receiver, parent: QWidget) -> None:
        super().__init__(parent)
        self._receiver = receiver
        self.setPlaceholderText(strings.ASK_FIRST)
        self.send_keys: SendKeys = "return"  # which key sends
        self.setAccessibleName(strings.MESSAGE)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)
        self._set_size()
        self.textChanged.connect(self._fit)
        theme.zoomed.connect(self._set_size)
        clear_base(self)
        self._fit()

    @property
    def text(self) -> str:
        """The typed text."""
        return text_of(self.document())

    @property
    def text_before_cursor(self) -> str:
        """The typed text up to the cursor."""
        return self._text_between(0, self.textCursor().position())

    def _text_between(self, first: int, last: int) -> str:
        """The typed text between two positions of a cursor, which count UTF-16 units."""
        units = self.text.encode("utf-16-le", "surrogatepass")
        return units[2 * first : 2 * last].decode("utf-16-le", "ignore")

    def set_text(self, text: str) -> None:
        """Replace the text and move the cursor to its end. Can be undone.

        A text that is too long is attached, and the field is empty.
        """
        if is_longer_than_field(text):
            self._receiver.attach_pasted(text)
            text = ""
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        self.setTextCursor(cursor)

    def paste_raw(self) -> None:
        """Insert the clipboard's text, or attach what the field does not hold."""
        self._insert(with_line_feeds(QGuiApplication.clipboard().text()))
        self.setFocus()

    def _insert(self, text: str) -> None:
        if is_longer_than_field(self.text + text):
            self._receiver.attach_pasted(text)
        else:
            self.textCursor().insertText(text)
            self.ensureCursorVisible()

    def insert_quote(self, text: str) -> None:
        """Insert `text` as a quote at the cursor, and move the cursor below it."""
        cursor = self.textCursor()
        before = self._text_between(0, cursor.selectionStart())
        after = self._text_between(cursor.selectionEnd(), self.document().characterCount())
        quote, suffix = quote_between(text, before, after)
        cursor.beginEditBlock()
        cursor.insertText(quote)
        below = cursor.position()
        cursor.insertText(suffix)
        cursor.setPosition(below)
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        self.ensureCursorVisible()
        self.setFocus()

    def sizeHint(self) -> QSize:
        return QSize(px(200), self._height_px())

    def minimumSizeHint(self) -> QSize:
        return QSize(px(80), px(_MIN_HEIGHT_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if held(event) == _SENDING[self.send_keys]:
                self._receiver.submit()
            elif held(event) in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier):
                self.textCursor().insertBlock()
                self.ensureCursorVisible()
            event.accept()
        elif event.key() == Qt.Key.Key_Escape:
            self._receiver.escape()
            event.accept()
        elif event.key() == Qt.Key.Key_Up and not held(event) and not self.text:
            self._receiver.edit_last()
            event.accept()
        elif _is_raw_paste(event):
            self.paste_raw()
            event.accept()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        # The window has shortcuts with the same keys; the focused field takes precedence.
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and (event.key() == Qt.Key.Key_Escape or _is_raw_paste(event))
        ):
            event.accept()
            return True
        return super().event(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or source.hasText() or is_image(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        self.take(source)

    def take(self, source: QMimeData, *, dragged: bool = False) -> None:
        """Insert or attach pasted data, or dropped data if it was `dragged`."""
        if files := local_files(source):
            self._receiver.take_files(files)
        elif is_image(source):
            self._receiver.take_image(*image_bytes(source, dragged=dragged))
        else:
            if is_document(text := with_line_feeds(source.text())):
                self._receiver.attach_pasted(text)
            else:
                self._insert(text)
            if left := images_beside(source):
                self._receiver.say_images_left(left)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @property
    def _line_px(self) -> int:
        return px(_LINE_PX)

    def _set_size(self) -> None:
        """Apply the font and the line height to the whole text. Clears the undo history."""
        set_font(self, _FONT_PX)
        line = QTextBlockFormat()
        line.setLineHeight(self._line_px, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self.document().setUndoRedoEnabled(False)
        everything = QTextCursor(self.document())
        everything.select(QTextCursor.SelectionType.Document)
        everything.mergeBlockFormat(line)
        self.document().setUndoRedoEnabled(True)
        self._fit()

    def _height_px(self) -> int:
        wanted = round(self.document().size().height())
        return max(px(_MIN_HEIGHT_PX), min(wanted, _MAX_LINES * self._line_px))

    def _fit(self) -> None:
        height = self._height_px()
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)
        full = self.document().size().height() > _MAX_LINES * self._line_px
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )


_SENDING: dict[SendKeys, Qt.KeyboardModifier] = {
    "return": Qt.KeyboardModifier.NoModifier,
    "command_return": Qt.KeyboardModifier.ControlModifier,
}


def _is_raw_paste(event: QKeyEvent) -> bool:
    wanted = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    return event.key() == Qt.Key.Key_V and held(event) == wanted


def with_line_feeds(text: str) -> str:
    """`text` of another program; some on macOS end lines with a carriage return."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def local_files(source: QMimeData) -> list[Path]:
    """The files and folders that are dragged or pasted."""
    return [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
