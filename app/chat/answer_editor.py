"""AnswerEditor: the text of an answer while a person edits it in its place, with Save and Cancel.

It shows the Markdown source without thoughts. ⌘Return saves. Escape cancels, and asks first if the text was
changed.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import strings
from app.controls.buttons import Button
from app.controls.sheets import Question
from app.controls.text_fields import TextArea
from app.richtext.text_canvas import MARGIN_PX
from app.theme.theme import Theme
from app.theme.zoom import px

_GAP_PX = 8
_FONT_PX, _LINE_PX = 14.5, 22
_MOST_LINES = 20
OUTDENT_PX = MARGIN_PX  # the box extends beyond the text column


class AnswerEditor(QWidget):
    """`save` gets the text, `cancel` is called when it is discarded, `resized` when the height changed.

    Extends `OUTDENT_PX` beyond the text column on both sides.
    """

    def __init__(
        self,
        theme: Theme,
        text: str,
        save: Callable[[str], object],
        cancel: Callable[[], object],
        resized: Callable[[], object],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._before = text
        self._cancel = cancel
        self.area = TextArea(theme, self, font_px=_FONT_PX, line_px=_LINE_PX)
        self.area.setAccessibleName(strings.EDIT_ANSWER)
        self.area.setAccessibleDescription(strings.EDIT_ANSWER_SAYS)
        self.area.set_value(text)
        self.area.value_changed.connect(self._on_changed)
        self.area.resized.connect(resized)
        self.cancel_button = Button(theme, strings.CANCEL, small=True, parent=self)
        self.save_button = Button(theme, strings.SAVE, "primary", True, self)
        self.save_button.setToolTip(strings.SAVE_KEYS)
        self.cancel_button.clicked.connect(self.cancel)
        self.save_button.clicked.connect(lambda: save(self.area.value))
        field = self.area.focusProxy()
        assert field is not None
        field.installEventFilter(self)
        self.setFocusProxy(self.area)

    @property
    def text(self) -> str:
        return self.area.value

    @property
    def is_changed(self) -> bool:
        """Whether discarding the text would lose something."""
        return self.area.value != self._before and bool(self.area.value.strip())

    def cancel(self) -> None:
        """Close without saving, after a question if the text was changed."""
        if not self.is_changed:
            self._cancel()
            return
        question = Question(
            self._theme,
            strings.DISCARD_TITLE,
            strings.DISCARD_DETAIL,
            strings.KEEP_EDITING,
            [("discard", strings.DISCARD, "danger")],
            self.window(),
        )
        question.chosen.connect(lambda _: self._cancel())
        question.rejected.connect(self.setFocus)
        question.open()

    def height_for(self, width: int) -> int:
        """The height in screen pixels in a text column of that width."""
        return self._area_height(width) + px(_GAP_PX) + self.save_button.sizeHint().height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        height = self._area_height(self.width() - 2 * OUTDENT_PX)
        self.area.setGeometry(0, 0, self.width(), height)
        right = self.width()
        for button in (self.save_button, self.cancel_button):
            size = button.sizeHint()
            right -= size.width()
            button.setGeometry(right, height + px(_GAP_PX), size.width(), size.height())
            right -= px(_GAP_PX)

    def eventFilter(self, field: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent):
            return super().eventFilter(field, event)
        held = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        saves = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and bool(held)
        if not saves and event.key() != Qt.Key.Key_Escape:
            return super().eventFilter(field, event)
        if event.type() is QEvent.Type.ShortcutOverride:  # else Escape stops the answer of another chat
            event.accept()
            return True
        if event.type() is QEvent.Type.KeyPress:
            if saves:
                self.save_button.click()
            else:
                self.cancel()
            return True
        return super().eventFilter(field, event)

    def _area_height(self, column: int) -> int:
        return self.area.height_for(column + 2 * OUTDENT_PX, _MOST_LINES)

    def _on_changed(self, text: str) -> None:
        self.save_button.setEnabled(bool(text.strip()))
