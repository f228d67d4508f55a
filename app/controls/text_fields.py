"""SearchField, one line, TextArea, several lines of plain text, and TextView, a text to read."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QInputMethodEvent,
    QKeyEvent,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
)
from PySide6.QtWidgets import QFrame, QLineEdit, QPlainTextEdit, QSizePolicy, QTextEdit, QVBoxLayout, QWidget

from app.controls.buttons import themed_icon
from app.controls.text_label import TextLabel
from app.theme.measures import set_font, set_mono_font
from app.theme.sheet import set_ground
from app.theme.theme import theme
from app.theme.zoom import px, px_size
from core.events.wire import well_formed

_USUAL_PX = 220
CLEAR_SEARCH = "Clear search"
_ANYWHERE, _AT_WORDS = QTextOption.WrapMode.WrapAnywhere, QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere


class SearchField(QLineEdit):
    """A search line with a magnifier, and a clear button while it has text.

    `name` is the placeholder and the accessible name. Escape clears it; if it is empty the window handles
    Escape. Down emits `results_wanted`; so does Return, or it calls `entered`.
    """

    results_wanted = Signal()  # moves to the results

    def __init__(self, name: str, entered: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.returnPressed.connect(entered or self.results_wanted)
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.addAction(themed_icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        self.clear_action = self.addAction(themed_icon("x"), QLineEdit.ActionPosition.TrailingPosition)
        self.clear_action.setText(CLEAR_SEARCH)
        self.clear_action.setVisible(False)
        self.clear_action.triggered.connect(self.clear)
        self.textChanged.connect(lambda text: self.clear_action.setVisible(bool(text)))

    def sizeHint(self) -> QSize:
        text_px = self.fontMetrics().horizontalAdvance(self.placeholderText())
        return QSize(max(px(_USUAL_PX), text_px + px(44)), super().sizeHint().height())

    def event(self, event: QEvent) -> bool:
        # Escape clears a field with text before the window handles it.
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_Escape
            and self.text()
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() == Qt.Key.Key_Down:
            self.results_wanted.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.returnPressed.emit()
        else:
            super().keyPressEvent(event)
            return
        event.accept()


_PAD_X_PX, _PAD_Y_PX = 10, 8


def _wrap_mode(text: str) -> QTextOption.WrapMode:
    # Qt searches for a word's end again for each visual line: 15 s for 400,000 letters without spaces.
    return _ANYWHERE if max(map(len, text.split()), default=0) > 20_000 else _AT_WORDS


_LINE_ENDS = dict.fromkeys(map(ord, "\u2028\u2029\ufdd0\ufdd1"), "\n")


def text_of(document: QTextDocument) -> str:
    """The text with "\\n" between lines. `toPlainText` would replace no-break spaces by spaces."""
    return well_formed(document.toRawText().translate(_LINE_ENDS))


class TextArea(QTextEdit):
    """Plain text in a box, 12/17 by default. Tab leaves it, and pasted text loses its formatting.

    `value` is the text, with "\\n" between lines.
    """

    value_changed = Signal(str)  # the whole text
    resized = Signal()  # `height_for` may differ

    def __init__(self, parent: QWidget | None = None, *, font_px: float = 12, line_px: int = 17) -> None:
        super().__init__(parent)
        self._line_px = line_px
        self._value = ""
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        set_font(self, font_px)
        self.document().setDocumentMargin(0)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self._take_text)
        self.document().documentLayout().documentSizeChanged.connect(lambda size: self.resized.emit())
        # Qt shows only the first line of a placeholder.
        self.placeholder = TextLabel("", font_px, line_px, wrap=True)
        self.placeholder.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        over = QVBoxLayout(self.viewport())
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self.placeholder, 0, Qt.AlignmentFlag.AlignTop)
        theme.zoomed.connect(self._space_lines)
        self._space_lines()

    @property
    def value(self) -> str:
        return self._value

    def set_value(self, text: str) -> None:
        """Replaces the text, the cursor position and the undo history."""
        if text == self._value:
            return
        was_blocked = self.blockSignals(True)
        self.setWordWrapMode(_wrap_mode(text))
        self.setPlainText(text)
        self._space_lines()
        self.blockSignals(was_blocked)
        self._take_text()

    def setPlaceholderText(self, text: str) -> None:
        self.placeholder.setText(text)

    def insertFromMimeData(self, source: QMimeData) -> None:
        self.setWordWrapMode(_wrap_mode(self._value + source.text()))
        super().insertFromMimeData(source)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        super().inputMethodEvent(event)
        self.placeholder.setVisible(not event.preeditString() and self.document().isEmpty())

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, 5 * self._line_px + 2 * _PAD_Y_PX))

    def height_for(self, width: int, most_lines: int) -> int:
        """The height in screen pixels of the whole text at that width, or of `most_lines` lines."""
        document = self.document()
        if document.textWidth() != width - 2 * px(_PAD_X_PX):
            document.setTextWidth(width - 2 * px(_PAD_X_PX))
        text_px = min(round(document.size().height()), px(most_lines * self._line_px))
        return text_px + 2 * px(_PAD_Y_PX)

    def _take_text(self) -> None:
        self.placeholder.setVisible(self.document().isEmpty())
        text = text_of(self.document())
        if text != self._value:
            self._value = text
            self.value_changed.emit(text)

    def _space_lines(self) -> None:
        """Sets a fixed line height for all lines; new lines inherit it. Keeps what can be undone."""
        can_undo = self.document().isUndoAvailable()
        spacing = QTextBlockFormat()
        spacing.setLineHeight(px(self._line_px), QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        if can_undo:
            cursor.joinPreviousEditBlock()
        cursor.mergeBlockFormat(spacing)
        if can_undo:
            cursor.endEditBlock()
        else:
            self.document().clearUndoRedoStacks()


class TextView(QPlainTextEdit):
    """A text to read, select and copy, named `name`, in the text font or, with `mono`, the code font.

    `ground` is the color of its ground in the palette.
    """

    def __init__(self, name: str, size_px: float, *, mono: bool = False, ground: str = "window") -> None:
        super().__init__()
        set_ground(self, ground)
        flags = Qt.TextInteractionFlag
        self.setReadOnly(True)
        self.setTextInteractionFlags(flags.TextSelectableByMouse | flags.TextSelectableByKeyboard)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setAccessibleName(name)
        self.document().setDocumentMargin(0)
        if mono:
            set_mono_font(self, size_px)
        else:
            set_font(self, size_px)
        # Lines wrap; only the caret's width would scroll.
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def setPlainText(self, text: str) -> None:
        self.setWordWrapMode(_wrap_mode(text))
        super().setPlainText(text)
