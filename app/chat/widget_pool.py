"""WidgetPool: the widgets that there are for a conversation's entries: made when needed, dropped when far.

A widget is filled a few milliseconds at a time and shown once it is ready. One that would take
something with it (an answer under way, a selection, the focus) is held, however far it is.
Of an entry whose widget fails to be made, filled or measured, a stand-in says so: no entry keeps the
others from being shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat import action_button, strings
from app.chat.action_button import ActionButton
from app.chat.answer import AnswerView
from app.chat.entry import Entry, Reply
from app.chat.user_message import UserMessage
from app.richtext.canvas import strings as canvas_strings
from app.richtext.canvas.text_canvas import MARGIN_PX, TextCanvas
from app.theme.theme import Theme
from app.theme.zoom import px, px_size

_GAP_PX = 4
# The button's empty border stands out of the column, as under answers.
_BUTTON_OUTDENT_PX = 6


class UnshownEntry(QWidget):
    """Stands `OUTDENT_PX` out of the reading column on both sides, like what it stands for."""

    OUTDENT_PX = MARGIN_PX

    def __init__(
        self, theme: Theme, name: str, source: str, error: Exception, parent: QWidget | None = None
    ) -> None:
        """`name` says what it stands for; `error` is why."""
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
        """It is always all there."""
        return True

    def ready_some(self) -> bool:
        """Nothing to do: see `Answer`."""
        return True

    def height_for(self, width: int) -> int:
        """The height when the reading column is `width` wide."""
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
# Fewer than these are never dropped: they cost less than making them again.
_ALWAYS_KEPT = 8


class WidgetPool:
    """`make` gives the widget of an entry, `stand_in` the one in its place after an error; `let_go`
    hears of one that is about to go; what `holds` says stays however far it is."""

    def __init__(
        self,
        make: Callable[[Entry], Item],
        stand_in: Callable[[Entry, Exception], UnshownEntry],
        let_go: Callable[[Item], object],
        holds: Callable[[Entry], bool],
    ) -> None:
        self._make = make
        self._stand_in = stand_in
        self._let_go = let_go
        self._holds = holds
        self.items: dict[Entry, Item] = {}

    def item(self, entry: Entry) -> Item:
        """The widget of `entry`, made if it has none; it may not be ready."""
        found = self.items.get(entry)
        if found is None:
            try:
                found = self.items[entry] = self._make(entry)
            except Exception as error:
                return self._replace(entry, error)
        return found

    def ready_some(self, entry: Entry) -> bool:
        """A few milliseconds' work on the widget of `entry`; whether that was all."""
        item = self.item(entry)
        try:
            return item.ready_some()
        except Exception as error:
            return self._replace(entry, error).is_ready

    def height_px(self, entry: Entry, column_px: int) -> int | None:
        """How high its widget is in a column so wide; None if it is not ready."""
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
        """The widget of `entry`, filled and shown."""
        while not self.item(entry).is_ready:
            self.ready_some(entry)
        item = self.item(entry)
        if item.isHidden():
            item.show()
        return item

    def is_ready(self, entry: Entry) -> bool:
        """Whether it has a widget with everything in it."""
        item = self.items.get(entry)
        return item is not None and item.is_ready

    @property
    def answers(self) -> list[AnswerView]:
        """Those widgets that are answers."""
        return [item for item in self.items.values() if isinstance(item, AnswerView)]

    def drop(self, entry: Entry) -> None:
        """Delete the widget of `entry`."""
        item = self.items.pop(entry)
        self._let_go(item)
        focus = QApplication.focusWidget()
        if focus is not None and item.isAncestorOf(focus):
            # Hiding it would pass the focus on, to a place beside an entry that is not there any more.
            focus.clearFocus()
        item.hide()
        item.body.let_go()
        item.deleteLater()

    def _replace(self, entry: Entry, error: Exception) -> UnshownEntry:
        if entry in self.items:
            self.drop(entry)
        found = self.items[entry] = self._stand_in(entry, error)
        return found

    def drop_all(self) -> None:
        """Another conversation."""
        for entry in list(self.items):
            self.drop(entry)

    def next_to_drop(self, near: Sequence[Entry]) -> Entry | None:
        """One that is not `near` and whose widget is not needed."""
        if len(self.items) <= _ALWAYS_KEPT:
            return None
        kept = set(near)
        return next((entry for entry in self.items if entry not in kept and not self._is_held(entry)), None)

    def _is_held(self, entry: Entry) -> bool:
        item, focus = self.items[entry], QApplication.focusWidget()
        return (
            (isinstance(entry, Reply) and not entry.over)
            or self._holds(entry)
            or (focus is not None and item.isAncestorOf(focus))
        )
