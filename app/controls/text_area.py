"""TextArea: several lines of plain text in a hairline box, 12/17 by default. Tab leaves it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QPaintEvent, QPalette, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QVBoxLayout, QWidget

from app.controls.focus_ring import FocusRing
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.measures import set_font, set_margins
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px, px_size
from core.events.wire import well_formed

_PAD_X_PX, _PAD_Y_PX = 10, 8


class TextArea(QWidget):
    """Pasted text loses its formatting. `value` is the text, with "\\n" between lines."""

    value_changed = Signal(str)  # the whole text
    resized = Signal()  # `height_for` may differ

    def __init__(
        self, theme: Theme, parent: QWidget | None = None, *, font_px: float = 12, line_px: int = 17
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._line_px = line_px
        self._value = ""
        self._edit = _Edit(self)
        self._edit.setAcceptRichText(False)
        self._edit.setTabChangesFocus(True)
        self._edit.setFrameShape(QFrame.Shape.NoFrame)
        set_font(self._edit, font_px)
        self._edit.document().setDocumentMargin(0)
        OverlayScrollBar(theme, self._edit)
        self._edit.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Qt shows only its first line. Painted where the text will be, in the same width.
        self.placeholder = TextLabel(theme, "", font_px, line_px, wrap=True, parent=self._edit.viewport())
        self.placeholder.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        over = QVBoxLayout(self._edit.viewport())
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self.placeholder, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        set_margins(layout, _PAD_X_PX, _PAD_Y_PX, _PAD_X_PX, _PAD_Y_PX)
        layout.addWidget(self._edit)
        self.setFocusProxy(self._edit)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._ring = FocusRing(self, theme, 6, sources=(self._edit,), with_mouse=True)
        self._edit.textChanged.connect(self._take_text)
        self._edit.composed.connect(self._show_placeholder)
        self._edit.document().documentLayout().documentSizeChanged.connect(lambda size: self.resized.emit())
        theme.changed.connect(self._restyle)
        theme.zoomed.connect(self._space_lines)
        self._restyle()
        self._space_lines()

    @property
    def value(self) -> str:
        """The text."""
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
        """Sets the text of an empty field."""
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
        frame = self._theme.color("accent_mid" if self._ring.shown else "control_border")
        draw_box(painter, area_of(self), 6, self._theme.color("text_area"), frame)

    def _show_placeholder(self, composing: bool = False) -> None:
        self.placeholder.setVisible(not composing and self._edit.document().isEmpty())

    def _take_text(self) -> None:
        self._show_placeholder()
        text = well_formed(self._edit.toPlainText())
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

    def _restyle(self) -> None:
        palette = QPalette(self._edit.palette())
        role = QPalette.ColorRole
        palette.setColor(role.Base, Qt.GlobalColor.transparent)
        palette.setColor(role.Text, self._theme.color("text"))
        palette.setColor(role.Highlight, self._theme.color("accent_fill"))
        palette.setColor(role.HighlightedText, self._theme.color("on_accent"))
        self._edit.setPalette(palette)
        self.update()


class _Edit(QTextEdit):
    """`composed` reports after each input method event whether text is being composed."""

    composed = Signal(bool)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        super().inputMethodEvent(event)
        self.composed.emit(bool(event.preeditString()))
