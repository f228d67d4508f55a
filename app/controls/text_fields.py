"""SearchField, one line, and TextArea, several lines of plain text."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QInputMethodEvent,
    QKeyEvent,
    QPaintEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QFrame, QLineEdit, QSizePolicy, QTextEdit, QVBoxLayout, QWidget

from app.controls.buttons import IconButton
from app.controls.focus_ring import FocusRing
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_font, set_margins
from app.theme.theme import clear_base, color, theme
from app.theme.zoom import area_of, design_px, height_of, painter_on, place, px, px_size, ratio_of, width_of
from core.events.wire import well_formed

HEIGHT_PX = 28
_ICON_PX = 14
_CLEAR_PX = 20
_LEFT_PX, _RIGHT_PX = 27, 6
_LEAST_PX = 200


class SearchField(QLineEdit):
    """A search line, 28 high, with a magnifier, and a clear button while it has text.

    `name` is the placeholder and the accessible name. Escape clears it; if it is empty the window handles
    Escape. Return and Down emit `results_wanted`.
    """

    results_wanted = Signal()  # Return or Down: moves to the results

    def __init__(self, name: str, clear_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        self.setFrame(False)
        set_font(self, 12.5)
        set_fixed_height(self, HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._clear = IconButton("x", clear_name, False, self, size=QSize(_CLEAR_PX, _CLEAR_PX))
        self._clear.clicked.connect(self.clear)
        self._clear.hide()
        self.textChanged.connect(self._show_clear_button)
        self._ring = FocusRing(self, 6, with_mouse=True)
        clear_base(self)

    @property
    def clear_button(self) -> IconButton:
        return self._clear

    def sizeHint(self) -> QSize:
        text = design_px(QFontMetricsF(self.font()).horizontalAdvance(self.placeholderText()))
        # QLineEdit keeps 2 px at both sides of its text.
        needed = _LEFT_PX + math.ceil(text) + 4 + _RIGHT_PX
        return px_size(QSize(max(_LEAST_PX, needed), HEIGHT_PX))

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
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.results_wanted.emit()
        else:
            super().keyPressEvent(event)
            return
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        x, y = width_of(self) - _CLEAR_PX - 4, (height_of(self) - _CLEAR_PX) // 2
        place(self._clear, x, y, _CLEAR_PX, _CLEAR_PX)
        self._set_text_margins()

    def _show_clear_button(self, text: str) -> None:
        self._clear.setVisible(bool(text))
        self._set_text_margins()

    def _set_text_margins(self) -> None:
        """Gives the placeholder the space of the clear button, which is hidden without text."""
        right = _CLEAR_PX + 6 if self.text() else _RIGHT_PX
        self.setTextMargins(px(_LEFT_PX), 0, px(right), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, area_of(self), 6, color("sel"))
        icon = icon_pixmap("search", color("text2"), _ICON_PX, ratio_of(self))
        painter.drawPixmap(QPointF(9, (height_of(self) - _ICON_PX) // 2), icon)
        painter.end()
        super().paintEvent(event)


_PAD_X_PX, _PAD_Y_PX = 10, 8
_LINE_ENDS = dict.fromkeys(map(ord, "\u2028\u2029\ufdd0\ufdd1"), "\n")


def text_of(document: QTextDocument) -> str:
    """The text with "\\n" between lines. `toPlainText` would replace no-break spaces by spaces."""
    return well_formed(document.toRawText().translate(_LINE_ENDS))


class TextArea(QWidget):
    """Text in a hairline box, 12/17 by default. Tab leaves it, and pasted text loses its formatting.

    `value` is the text, with "\\n" between lines.
    """

    value_changed = Signal(str)  # the whole text
    resized = Signal()  # `height_for` may differ

    def __init__(self, parent: QWidget | None = None, *, font_px: float = 12, line_px: int = 17) -> None:
        super().__init__(parent)
        self._line_px = line_px
        self._value = ""
        self._edit = _Edit(self)
        self._edit.setAcceptRichText(False)
        self._edit.setTabChangesFocus(True)
        self._edit.setFrameShape(QFrame.Shape.NoFrame)
        set_font(self._edit, font_px)
        self._edit.document().setDocumentMargin(0)
        OverlayScrollBar(self._edit)
        self._edit.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Qt shows only its first line. Painted where the text will be, in the same width.
        self.placeholder = TextLabel("", font_px, line_px, wrap=True, parent=self._edit.viewport())
        self.placeholder.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        over = QVBoxLayout(self._edit.viewport())
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self.placeholder, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        set_margins(layout, _PAD_X_PX, _PAD_Y_PX, _PAD_X_PX, _PAD_Y_PX)
        layout.addWidget(self._edit)
        self.setFocusProxy(self._edit)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._ring = FocusRing(self, 6, sources=(self._edit,), with_mouse=True)
        self._edit.textChanged.connect(self._take_text)
        self._edit.composed.connect(self._show_placeholder)
        self._edit.document().documentLayout().documentSizeChanged.connect(lambda size: self.resized.emit())
        clear_base(self._edit)
        theme.zoomed.connect(self._space_lines)
        self._space_lines()

    @property
    def value(self) -> str:
        return self._value

    def set_value(self, text: str) -> None:
        """Replaces the text, the cursor position and the undo history."""
        if text == self._value:
            return
        self._edit.blockSignals(True)
        self._edit.setPlainText(text)
        self._space_lines()
        self._edit.blockSignals(False)
        self._take_text()

    def set_placeholder(self, text: str) -> None:
        self.placeholder.setText(text)
        self._show_placeholder()

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        self._edit.setAccessibleName(name)

    def setAccessibleDescription(self, description: str) -> None:
        super().setAccessibleDescription(description)
        self._edit.setAccessibleDescription(description)

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, 5 * self._line_px + 2 * _PAD_Y_PX))

    def height_for(self, width: int, most_lines: int) -> int:
        """The height in screen pixels of the whole text at that width, or of `most_lines` lines."""
        document = self._edit.document()
        if document.textWidth() != width - 2 * px(_PAD_X_PX):
            document.setTextWidth(width - 2 * px(_PAD_X_PX))
        text_px = min(round(document.size().height()), px(most_lines * self._line_px))
        return text_px + 2 * px(_PAD_Y_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        frame = color("accent_mid" if self._ring.shown else "control_border")
        draw_box(painter, area_of(self), 6, color("text_area"), frame)

    def _show_placeholder(self, composing: bool = False) -> None:
        self.placeholder.setVisible(not composing and self._edit.document().isEmpty())

    def _take_text(self) -> None:
        self._show_placeholder()
        text = text_of(self._edit.document())
        if text != self._value:
            self._value = text
            self.value_changed.emit(text)

    def _space_lines(self) -> None:
        """Sets a fixed line height for all lines; new lines inherit it."""
        spacing = QTextBlockFormat()
        spacing.setLineHeight(px(self._line_px), QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        cursor = QTextCursor(self._edit.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(spacing)
        self._edit.document().clearUndoRedoStacks()


class _Edit(QTextEdit):
    """`composed` reports after each input method event whether text is being composed."""

    composed = Signal(bool)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        super().inputMethodEvent(event)
        self.composed.emit(bool(event.preeditString()))
