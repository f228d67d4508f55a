"""WidgetPool: the widgets that there are for a conversation's entries: made when needed, dropped when far.

A widget is filled a few milliseconds at a time and shown once it is ready. One that would take
something with it (an answer under way, a selection, the focus) is held, however far it is.
Of an entry whose widget fails to be made, filled or measured, a stand-in says so: no entry keeps the
others from being shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QApplication

from app.chat.answer.answer import AnswerView
from app.chat.answer.entry import Entry, Reply
from app.chat.answer.user_message import UserMessage
from app.chat.transcript.entry_layout import EntryLayout
from app.chat.transcript.unshown_entry import UnshownEntry

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

    def next_to_ready(
        self, entries: Sequence[Entry], layout: EntryLayout, view: tuple[int, int], near: range
    ) -> Entry | None:
        """The one of those `near` the view (top and bottom) that is nearest to it and not ready."""
        top, bottom = view
        waiting = [index for index in near if not self.is_ready(entries[index])]
        if not waiting:
            return None

        def distance(index: int) -> int:
            return max(layout.tops[index] - bottom, top - layout.bottom(index))

        return entries[min(waiting, key=distance)]

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
