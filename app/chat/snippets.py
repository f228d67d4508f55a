"""SnippetMenu: the saved prompts above the composer, and the placeholders of an inserted one.

`/` in the empty field opens the list, and what is typed behind it filters it. ↑ and ↓ select, Return and Tab
insert, Escape closes the list and leaves the text. The list is hidden while no name matches, so a message may
begin with `/`. The field keeps the focus. After an insertion Tab and Shift+Tab select the placeholders in
order; those that are unchanged are tinted.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPainter, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTextEdit,
    QWidget,
)

from app.chat import strings
from app.controls.scroll_bar import ScrollBar
from app.controls.shapes import draw_box, draw_text
from app.richtext.selection import utf16_length
from app.richtext.text_canvas import announce
from app.session.chats.snippets import BUILT_IN, Snippet, filled, matching
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_rect, painter_on, px, zoom

_ROW_PX = 28
_MOST_ROWS = 8
_PAD_PX = 6
_GAP_PX = 8
_WIDTH_PX = 460
_RADIUS_PX = 10


class SnippetMenu(QObject):
    """Follows the field `edit`; the list is shown above `frame`."""

    def __init__(self, theme: Theme, edit: QTextEdit, frame: QWidget) -> None:
        super().__init__(edit)
        self._theme = theme
        self._edit = edit
        self._frame = frame
        self._snippets: tuple[Snippet, ...] = BUILT_IN
        self._before = ""
        # Whether the text begins with a `/` that opened the list, and Escape did not dismiss it.
        self._slash = False
        self._replaces = False  # the typed `/name`, rather than being inserted at the cursor
        self.list: SnippetList | None = None  # None until it was opened once
        self.placeholders = Placeholders(theme, edit)
        edit.installEventFilter(self)
        edit.textChanged.connect(self._follow_text)

    @property
    def is_open(self) -> bool:
        return self.list is not None and not self.list.isHidden()

    def set_snippets(self, snippets: Sequence[Snippet]) -> None:
        """Sets the prompts that are offered."""
        self._snippets = tuple(snippets)

    def open(self) -> None:
        """Show all prompts; the chosen one is inserted at the cursor."""
        self._edit.setFocus()
        self._show("", replaces=False)

    def close(self) -> None:
        if self.list is not None:
            self.list.setVisible(False)

    def forget(self) -> None:
        """Close the list and end the placeholders: another text is shown."""
        self._slash = False
        self.close()
        self.placeholders.end()

    def place(self) -> None:
        """Follow the frame's geometry."""
        if self.list is not None and self.is_open:
            origin = self._frame.mapTo(self._frame.window(), QPoint(0, 0))
            self.list.place_above(QRect(origin, self._frame.size()))

    def insert(self, snippet: Snippet) -> None:
        """Insert a prompt, in place of the typed `/name` if that opened the list."""
        cursor = self._edit.textCursor()
        if self._replaces:
            cursor.select(QTextCursor.SelectionType.Document)
        self._slash = False
        self.close()
        self.placeholders.insert(cursor, snippet.text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.close()
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        key = event.key()
        held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if self.is_open and self.list is not None and not held:
            if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                self.list.select_next(1 if key == Qt.Key.Key_Down else -1)
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab):
                self.insert(self.list.chosen)
                return True
            if key == Qt.Key.Key_Escape:
                self._slash = False
                self.close()
                return True
        if key == Qt.Key.Key_Tab and not held:
            return self.placeholders.step(1)
        if key == Qt.Key.Key_Backtab:
            return self.placeholders.step(-1)
        return False

    def _follow_text(self) -> None:
        text, before = self._edit.toPlainText(), self._before
        self._before = text
        opens = text == "/" and not before and self._edit.hasFocus()
        self._slash = opens or (self._slash and text.startswith("/"))
        if self._slash:
            self._show(text[1:], replaces=True)
        else:
            self.close()

    def _show(self, typed: str, *, replaces: bool) -> None:
        found = matching(self._snippets, typed)
        self._replaces = replaces
        if not found:
            self.close()
            return
        if self.list is None:
            self.list = SnippetList(self._theme, self._frame.window(), self._edit)
            self.list.clicked.connect(
                lambda index: self.insert(self.list.at(index.row())) if self.list else None
            )
        self.list.show_snippets(found)
        self.place()


class SnippetList(QListWidget):
    """Names with the beginning of their texts. Never has the focus; `speaker` announces the selection."""

    def __init__(self, theme: Theme, parent: QWidget, speaker: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._speaker = speaker
        self._snippets: tuple[Snippet, ...] = ()
        self.setAccessibleName(strings.SAVED_PROMPTS)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setItemDelegate(_Row(theme, self))
        self.setVerticalScrollBar(ScrollBar(theme, Qt.Orientation.Vertical))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.setViewportMargins(0, px(_PAD_PX), 0, px(_PAD_PX))
        self.setMouseTracking(True)
        self.itemEntered.connect(self.setCurrentItem)
        self.setVisible(False)
        theme.changed.connect(self.update)
        theme.changed.connect(self.viewport().update)

    @property
    def chosen(self) -> Snippet:
        """The selected prompt."""
        return self.at(self.currentRow())

    def at(self, row: int) -> Snippet:
        """The prompt of a row."""
        return self._snippets[row]

    def show_snippets(self, snippets: Sequence[Snippet]) -> None:
        """Show these, at least one; the first is selected."""
        self._snippets = tuple(snippets)
        self.clear()
        for each in snippets:
            item = QListWidgetItem(each.name, self)
            item.setData(Qt.ItemDataRole.UserRole, " ".join(filled(each.text).text.split()))
            item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, each.text)
        self.setVisible(True)
        self.raise_()
        self._select(0)

    def select_next(self, rows: int) -> None:
        """Select the next prompt or the one before; from the last to the first."""
        self._select((self.currentRow() + rows) % self.count())

    def place_above(self, frame: QRect) -> None:
        """Place the list above `frame`, in the parent's coordinates, no higher than fits there."""
        height = min(self.count(), _MOST_ROWS) * px(_ROW_PX) + 2 * px(_PAD_PX)
        height = min(height, frame.top() - 2 * px(_GAP_PX))
        width = min(px(_WIDTH_PX), frame.width())
        self.setGeometry(frame.left(), frame.top() - px(_GAP_PX) - height, width, height)

    def event(self, event: QEvent) -> bool:
        if event.type() != QEvent.Type.Paint:
            return super().event(event)
        color = self._theme.color
        draw_box(painter_on(self), area_of(self), _RADIUS_PX, color("raised"), color("hair2"))
        return True

    def _select(self, row: int) -> None:
        self.setCurrentRow(row)
        announce(self._speaker, strings.saved_prompt(self.chosen.name, row + 1, self.count()))


class _Row(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QListWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(px(120), px(_ROW_PX))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        color = self._theme.color
        box = design_rect(QRectF(option.rect))
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.scale(zoom(), zoom())
        if selected:
            draw_box(painter, box.adjusted(6, 1, -6, -1), 5, color("accent_fill"))
        name, text = (
            str(index.data(role)) for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.UserRole)
        )
        ink, font = color("on_accent" if selected else "text"), ui_font(12.5, 500)
        width = min(QFontMetricsF(font).horizontalAdvance(name) + 2, box.width() / 2)
        left = Qt.AlignmentFlag.AlignLeft
        draw_text(painter, QRectF(box.left() + 14, box.top(), width, box.height()), name, font, ink, left)
        rest = box.adjusted(14 + width + 10, 0, -14, 0)
        draw_text(painter, rest, text, ui_font(12), color("on_accent" if selected else "text2"), left)
        painter.restore()


class Placeholders(QObject):
    """The placeholders of the last inserted prompt, which follow the text as it is edited."""

    def __init__(self, theme: Theme, edit: QTextEdit) -> None:
        super().__init__(edit)
        self._theme = theme
        self._edit = edit
        # Start, end and name of each; the end of the prompt.
        self._places: list[tuple[QTextCursor, QTextCursor, str]] = []
        self._last: QTextCursor | None = None
        self._undo_steps = 0  # once the prompt is inserted; fewer: that was undone
        edit.textChanged.connect(self._tint)
        theme.changed.connect(self._tint)

    def insert(self, cursor: QTextCursor, text: str) -> None:
        """Replace the selection of `cursor` by a prompt, in one undo step; select its first placeholder."""
        self.end()
        shown, places = filled(text)
        start = cursor.selectionStart()
        cursor.insertText(shown)
        self._undo_steps = self._edit.document().availableUndoSteps()
        self._last = self._cursor_at(start + utf16_length(shown))
        for first, last in places:
            begins, ends = (self._cursor_at(start + utf16_length(shown[:at])) for at in (first, last))
            # Text that is typed in its place is between the two.
            begins.setKeepPositionOnInsert(True)
            self._places.append((begins, ends, shown[first:last]))
        cursor.setPosition(start)
        self._edit.setTextCursor(cursor)
        self.step(1)
        self._tint()
        self._edit.ensureCursorVisible()

    def step(self, direction: int) -> bool:
        """Select the next placeholder, or the one before; after the last, the prompt's end. False if none."""
        if self._last is None:
            return False
        cursor = self._edit.textCursor()
        here, there = cursor.selectionStart(), cursor.selectionEnd()
        if direction < 0:
            found = [each for each in self._places if each[1].position() < max(here, 1)][-1:]
        else:
            found = [
                each for each in self._places if each[0].position() >= there and each[1].position() > there
            ][:1]
        if found:
            cursor.setPosition(found[0][0].position())
            cursor.setPosition(found[0][1].position(), QTextCursor.MoveMode.KeepAnchor)
        elif direction < 0:
            return False
        else:
            cursor.setPosition(self._last.position())
            self.end()
        self._edit.setTextCursor(cursor)
        return True

    def end(self) -> None:
        """Tab leaves the field again."""
        self._places.clear()
        self._last = None
        self._tint()

    def _tint(self) -> None:
        """Tint the placeholders that are unchanged."""
        document = self._edit.document()
        if document.isEmpty() or document.availableUndoSteps() < self._undo_steps:
            self._undo_steps = 0
            self._places.clear()
            self._last = None
        tints = []
        for begins, ends, name in self._places:
            cursor = QTextCursor(begins)
            cursor.setPosition(ends.position(), QTextCursor.MoveMode.KeepAnchor)
            if cursor.selectedText() == name:
                tint = QTextEdit.ExtraSelection()
                tint.cursor = cursor
                tint.format.setBackground(self._theme.color("accent_tint"))
                tints.append(tint)
        self._edit.setExtraSelections(tints)

    def _cursor_at(self, position: int) -> QTextCursor:
        cursor = QTextCursor(self._edit.document())
        cursor.setPosition(position)
        return cursor
