"""ComposerEdit: the text field of the composer. Plain text, grows to eight lines, then scrolls.

Return asks to send and Shift+Return breaks the line, or, with the other send keys, ⌘Return
sends and Return breaks the line. Escape is told. A paste that may be a document is not
inserted but offered as `long_pasted`; pasting raw (⇧⌘V) inserts it whatever its length.
Dropped or pasted files are offered as `files_dropped`. It decides nothing about any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QEvent, QMimeData, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QTextBlockFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QWidget

from app.chat import strings
from app.chat.attachment_chip import estimated_tokens
from app.controls.scroll_bar import ScrollBar
from app.theme.fonts import enlarged_ui_font
from app.theme.theme import Theme
from app.theme.zoom import px
from core.events.text import well_formed


def quote_lines(text: str) -> str:
    """`text` with a mark before each line, without empty lines around it."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").splitlines())


def quote_between(text: str, before: str, after: str) -> tuple[str, str]:
    """What to insert between `before` and `after` so that the quote of `text` is a paragraph of its own.

    In two parts: the person goes on writing between them.
    """
    gap = "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    rest = "\n\n" if after and not after.startswith("\n") else ""
    return f"{gap}{quote_lines(text)}\n\n", rest


SendKeys = Literal["return", "command_return"]

# Shorter than the tokens that make a document (the visual design's 2,000), whatever it says.
SHORT_CHARACTERS = 2_000
_FONT_PX = 14.5
_LINE_PX = 21
_MIN_HEIGHT_PX = 24
_MAX_LINES = 8


class ComposerEdit(QTextEdit):
    """Signals say what the person asked for; the text stays until `set_text` replaces it."""

    send_requested = Signal()
    escaped = Signal()
    edit_last_requested = Signal()  # Up in an empty field
    long_pasted = Signal(str)  # a text that may be a document
    image_pasted = Signal()
    files_dropped = Signal(object)  # list[Path]
    focus_changed = Signal(bool)  # has it now

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._placeholder = strings.ASK_FIRST
        self._send_keys: SendKeys = "return"
        self.setAccessibleName(strings.MESSAGE)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBar(ScrollBar(theme, Qt.Orientation.Vertical))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)
        self._set_size()
        self.textChanged.connect(self._fit)
        theme.changed.connect(self._recolor)
        theme.zoomed.connect(self._set_size)
        self._recolor()
        self._fit()

    @property
    def text(self) -> str:
        """What is typed."""
        return well_formed(self.toPlainText())

    def set_text(self, text: str) -> None:
        """Replace what is typed and put the cursor behind it; undo brings the old text back."""
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        self.setTextCursor(cursor)

    def set_send_keys(self, keys: SendKeys) -> None:
        """Which key sends; the other ones break the line."""
        self._send_keys = keys

    def paste_raw(self) -> None:
        """Insert the text on the clipboard, whatever its length, and go on writing here."""
        self.textCursor().insertText(QGuiApplication.clipboard().text())
        self.ensureCursorVisible()
        self.setFocus()

    def insert_quote(self, text: str) -> None:
        """Put `text` in as a quote where the cursor is, and go on writing below it."""
        cursor = self.textCursor()
        written = self.toPlainText()
        quote, rest = quote_between(
            text, written[: cursor.selectionStart()], written[cursor.selectionEnd() :]
        )
        cursor.beginEditBlock()
        cursor.insertText(quote)
        below = cursor.position()
        cursor.insertText(rest)
        cursor.setPosition(below)
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        self.ensureCursorVisible()
        self.setFocus()

    def set_placeholder(self, text: str) -> None:
        """Shown while nothing is typed."""
        self._placeholder = text
        self.viewport().update()

    @property
    def placeholder(self) -> str:
        """What is shown while nothing is typed."""
        return self._placeholder

    def sizeHint(self) -> QSize:
        return QSize(px(200), self._height_px())

    def minimumSizeHint(self) -> QSize:
        return QSize(px(80), px(_MIN_HEIGHT_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            if held == _SENDING[self._send_keys]:
                self.send_requested.emit()
            elif held in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier):
                self.textCursor().insertBlock()
                self.ensureCursorVisible()
            event.accept()
        elif event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            event.accept()
        elif event.key() == Qt.Key.Key_Up and not event.modifiers() and not self.text:
            self.edit_last_requested.emit()
            event.accept()
        elif _is_raw_paste(event):
            self.paste_raw()
            event.accept()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        # The window may own the same keys; while this field has them they mean what is said above.
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and (event.key() == Qt.Key.Key_Escape or _is_raw_paste(event))
        ):
            event.accept()
            return True
        return super().event(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or source.hasText() or source.hasImage()

    def insertFromMimeData(self, source: QMimeData) -> None:
        files = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if files:
            self.files_dropped.emit(files)
        elif source.hasImage() and not source.hasText():
            self.image_pasted.emit()
        elif len(source.text()) > SHORT_CHARACTERS:
            self.long_pasted.emit(source.text())
        else:
            self.textCursor().insertText(source.text())
            self.ensureCursorVisible()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.toPlainText():
            painter = QPainter(self.viewport())
            painter.setFont(self.font())
            painter.setPen(self._theme.color("text2"))
            line = self.viewport().rect().adjusted(1, 0, 0, 0)
            line.setHeight(self._line_px)
            text = painter.fontMetrics().elidedText(
                self._placeholder, Qt.TextElideMode.ElideRight, line.width()
            )
            painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
            painter.end()
        super().paintEvent(event)

    @property
    def _line_px(self) -> int:
        return px(_LINE_PX)

    def _set_size(self) -> None:
        """The type and its fixed lines, of what is there too. Undo knows nothing of before."""
        self.setFont(enlarged_ui_font(_FONT_PX))
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

    def _recolor(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Text, self._theme.color("text"))
        palette.setColor(QPalette.ColorRole.Base, QColor(Qt.GlobalColor.transparent))
        palette.setColor(QPalette.ColorRole.Highlight, self._theme.color("accent_fill"))
        palette.setColor(QPalette.ColorRole.HighlightedText, self._theme.color("on_accent"))
        self.setPalette(palette)
        self.viewport().update()


_SENDING: dict[SendKeys, Qt.KeyboardModifier] = {
    "return": Qt.KeyboardModifier.NoModifier,
    "command_return": Qt.KeyboardModifier.ControlModifier,
}


def _is_raw_paste(event: QKeyEvent) -> bool:
    wanted = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    return event.key() == Qt.Key.Key_V and event.modifiers() == wanted


DOCUMENT_TOKENS = 2_000
# No tokenizer in use makes fewer tokens of this.
SURELY_CHARACTERS = 24_000
_PATIENCE_MS = 400

# Ask for the tokens of a text; the answer comes by the callback. False: nobody can count now.
Weigh = Callable[[str, Callable[[int], None]], bool]


class PasteWeigher(QObject):
    """One paste at a time: another one first decides the one before by estimate."""

    def __init__(self, edit: ComposerEdit, attach: Callable[[str], None], parent: QObject | None) -> None:
        super().__init__(parent)
        self._edit = edit
        self._attach = attach
        self._weigh: Weigh | None = None
        self._text = ""
        self._place: QTextCursor | None = None
        self._timer = QTimer(self, interval=_PATIENCE_MS, singleShot=True)
        self._timer.timeout.connect(self._estimate)

    @property
    def busy(self) -> bool:
        """Whether a paste is being weighed."""
        return self._place is not None

    def set_weigh(self, weigh: Weigh | None) -> None:
        """Who counts."""
        self._weigh = weigh

    def take(self, text: str) -> None:
        """Decide about `text`, now or soon."""
        self._estimate()
        self._text, self._place = text, QTextCursor(self._edit.textCursor())
        if len(text) >= SURELY_CHARACTERS:
            self._decide(DOCUMENT_TOKENS + 1)
        elif self._weigh is None or not self._weigh(text, lambda tokens: self._counted(text, tokens)):
            self._estimate()
        elif self.busy:
            self._timer.start()

    def cancel(self) -> None:
        """Forget what is being weighed."""
        self._timer.stop()
        self._text, self._place = "", None

    def _counted(self, text: str, tokens: int) -> None:
        if self.busy and text == self._text:
            self._decide(tokens)

    def _estimate(self) -> None:
        if self.busy:
            self._decide(estimated_tokens(self._text))

    def _decide(self, tokens: int) -> None:
        text, place = self._text, self._place
        self.cancel()
        if tokens > DOCUMENT_TOKENS:
            self._attach(text)
        elif place is not None:
            place.insertText(text)
            self._edit.ensureCursorVisible()
