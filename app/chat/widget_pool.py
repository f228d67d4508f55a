"""WidgetPool: the widgets of a conversation's entries, made on demand and deleted when far from the viewport.

A widget is prepared in steps of a few milliseconds and shown once it is ready. Widgets of unfinished
answers, and widgets with a selection or the focus, are never deleted. If making, preparing or measuring a
widget fails, an `UnshownEntry` takes its place, so that the other entries are still shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat import action_button, strings
from app.chat.action_button import ActionButton
from app.chat.answer import AnswerView
from app.chat.entry import AnswerEntry, Entry
from app.chat.user_message import UserMessage
from app.richtext import strings as canvas_strings
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.theme.theme import Theme
from app.theme.zoom import px, px_size

_GAP_PX = 4
# The button's empty border is outdented, as under answers.
_BUTTON_OUTDENT_PX = 6


class UnshownEntry(QWidget):
    """Replaces the widget of an entry that could not be shown; its button copies the source.

    Extends `OUTDENT_PX` beyond the text column on both sides.
    """

    OUTDENT_PX = MARGIN_PX

    def __init__(
        self, theme: Theme, name: str, source: str, error: Exception, parent: QWidget | None = None
    ) -> None:
        """`name` is the accessible name, `error` the exception that is reported."""
        super().__init__(parent)
        self._source = source
        self.body = TextCanvas(theme, None, self)
        self.body.setAccessibleName(name)
        self.body.give_up(error)
        self.body.setAccessibleDescription(canvas_strings.UNSHOWN)
        self.copy_button = ActionButton(theme, "copy", strings.COPY_SOURCE, self)
        self.copy_button.clicked.connect(self._copy)

    @property
    def is_ready(self) -> bool:
        """Always true: there is nothing to prepare."""
        return True

    def prepare_step(self) -> bool:
        """Does nothing; see `AnswerView.prepare_step`."""
        return True

    def height_for(self, width: int) -> int:
        """The height in screen pixels in a text column of that width."""
        return self.body.height_for(width) + px(_GAP_PX) + px_size(action_button.SIZE).height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        column = self.width() - 2 * self.OUTDENT_PX
        height = self.body.height_for(column)
        self.body.setGeometry(self.OUTDENT_PX - MARGIN_PX, 0, column + 2 * MARGIN_PX, height + 2)
        self.copy_button.move(self.OUTDENT_PX - px(_BUTTON_OUTDENT_PX), height + px(_GAP_PX))
        self.copy_button.resize(px_size(action_button.SIZE))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._source)
        self.copy_button.show_done()


Item = UserMessage | AnswerView | UnshownEntry
# Up to this many widgets are kept, because making them again costs more.
_ALWAYS_KEPT = 8


class WidgetPool:
    """`make` returns the widget of an entry, `make_unshown` its replacement after an error.

    `release` is called before a widget is deleted. Widgets of entries for which `is_held` is true are kept.
    """

    def __init__(
        self,
        make: Callable[[Entry], Item],
        make_unshown: Callable[[Entry, Exception], UnshownEntry],
        release: Callable[[Item], object],
        is_held: Callable[[Entry], bool],
    ) -> None:
        self._make = make
        self._make_unshown = make_unshown
        self._release = release
        self._is_held_outside = is_held
        self.items: dict[Entry, Item] = {}

    def item(self, entry: Entry) -> Item:
        """Return the widget of `entry`, made if needed; it may not be ready."""
        found = self.items.get(entry)
        if found is None:
            try:
                found = self.items[entry] = self._make(entry)
            except Exception as error:
                return self._replace(entry, error)
        return found

    def prepare_step(self, entry: Entry) -> bool:
        """Prepare the widget of `entry` for a few milliseconds. Returns True once it is ready."""
        item = self.item(entry)
        try:
            return item.prepare_step()
        except Exception as error:
            return self._replace(entry, error).is_ready

    def height_px(self, entry: Entry, column_px: int) -> int | None:
        """The height of its widget in a column of that width, in screen pixels; None if it is not ready."""
        item = self.items.get(entry)
        if item is None or not item.is_ready:
            return None
        try:
            return item.height_for(column_px)
        except Exception as error:
            replaced = self._replace(entry, error)
            replaced.show()
            return replaced.height_for(column_px)

    def ready(self, entry: Entry) -> Item:
        """Make, prepare and show the widget of `entry`, and return it."""
        while not self.item(entry).is_ready:
            self.prepare_step(entry)
        item = self.item(entry)
        if item.isHidden():
            item.show()
        return item

    def is_ready(self, entry: Entry) -> bool:
        """Whether its widget is fully prepared."""
        item = self.items.get(entry)
        return item is not None and item.is_ready

    @property
    def answers(self) -> list[AnswerView]:
        return [item for item in self.items.values() if isinstance(item, AnswerView)]

    def drop(self, entry: Entry) -> None:
        item = self.items.pop(entry)
        self._release(item)
        focus = QApplication.focusWidget()
        if focus is not None and item.isAncestorOf(focus):
            # Hiding it would move the focus to a neighbour of the removed entry.
            focus.clearFocus()
        item.hide()
        item.body.let_go()
        item.deleteLater()

    def _replace(self, entry: Entry, error: Exception) -> UnshownEntry:
        if entry in self.items:
            self.drop(entry)
        found = self.items[entry] = self._make_unshown(entry, error)
        return found

    def drop_all(self) -> None:
        for entry in list(self.items):
            self.drop(entry)

    def next_to_drop(self, near: Sequence[Entry]) -> Entry | None:
        """An entry outside `near` whose widget can be deleted."""
        if len(self.items) <= _ALWAYS_KEPT:
            return None
        kept = set(near)
        return next((entry for entry in self.items if entry not in kept and not self._is_held(entry)), None)

    def _is_held(self, entry: Entry) -> bool:
        item, focus = self.items[entry], QApplication.focusWidget()
        return (
            (isinstance(entry, AnswerEntry) and not entry.over)
            or self._is_held_outside(entry)
            or (focus is not None and item.isAncestorOf(focus))
        )
