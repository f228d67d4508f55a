"""EntryColumn: the scrolled widget of the transcript, which lays the entries out in a centred column.

Heights of entries without a widget are estimated. When a measured height replaces an estimate, the entry in
view keeps its position on the screen.

`WidgetPool` makes the widgets of entries on demand, in short steps, and deletes those far from the viewport;
never those of unfinished answers, nor with a selection or the focus. If making, preparing or measuring one
fails, an `UnshownEntry` takes its place, so that the other entries are still shown. `Prefetch` has them made
in time.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from PySide6.QtCore import QObject, QRect, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from app.chat import strings
from app.chat.answer import AnswerView
from app.chat.entry import AnswerEntry, Entry
from app.chat.user_message import UserMessage
from app.richtext import strings as canvas_strings
from app.richtext.canvas_menu import ActionButton
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.theme.theme import theme
from app.theme.zoom import px, px_size, zoom

_UNSHOWN_GAP_PX = 4
# The button's empty border is outdented, as under answers.
_BUTTON_OUTDENT_PX = 6


class UnshownEntry(QWidget):
    """Replaces the widget of an entry that could not be shown; its button copies the source.

    Extends `MARGIN_PX` beyond the text column on both sides.
    """

    def __init__(self, name: str, source: str, error: Exception, parent: QWidget | None = None) -> None:
        """`name` is the accessible name, `error` the exception that is reported."""
        super().__init__(parent)
        self._source = source
        self.body = TextCanvas(None, self)
        self.body.setAccessibleName(name)
        self.body.give_up(error)
        self.body.setAccessibleDescription(canvas_strings.UNSHOWN)
        self.copy_button = ActionButton("copy", strings.COPY_SOURCE, self)
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
        return self.body.height_for(width) + px(_UNSHOWN_GAP_PX) + px_size(ActionButton.SIZE).height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        column = self.width() - 2 * MARGIN_PX
        height = self.body.height_for(column)
        self.body.setGeometry(0, 0, column + 2 * MARGIN_PX, height + 2)
        self.copy_button.move(MARGIN_PX - px(_BUTTON_OUTDENT_PX), height + px(_UNSHOWN_GAP_PX))
        self.copy_button.resize(px_size(ActionButton.SIZE))

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


class Anchor(NamedTuple):
    """Keeps an entry in place: `offset` px of its height (`scaled`: that fraction) are above the view."""

    entry: int  # index
    offset: float
    scaled: bool = False


class EntryLayout:
    """Tops of entries with `heights`, each followed by its gap. The first top is `first_px`.

    All values are screen pixels from the top of the column.
    """

    def __init__(self, heights: Sequence[int] = (), gaps: Sequence[int] = (), first_px: int = 0) -> None:
        self.heights = list(heights)
        steps = (height + gap for height, gap in zip(heights, gaps, strict=True))
        *self.tops, self.end = accumulate(steps, initial=first_px)

    def __len__(self) -> int:
        return len(self.tops)

    def bottom(self, index: int) -> int:
        """The bottom of entry `index`."""
        return self.tops[index] + self.heights[index]

    def between(self, low: float, high: float) -> range:
        """The indices of the entries that intersect [low, high)."""
        first = max(0, bisect_right(self.tops, low) - 1)
        if first < len(self) and self.bottom(first) <= low:
            first += 1
        return range(first, max(first, bisect_left(self.tops, high)))

    def anchor(self, view_top: float, view_bottom: float, measured: Sequence[bool]) -> Anchor | None:
        """The first measured entry in view, else a fraction of the first entry; None without entries."""
        seen = self.between(view_top, view_bottom)
        for index in seen:
            if measured[index]:
                return Anchor(index, view_top - self.tops[index])
        if not seen:
            return None
        height = max(1, self.heights[seen[0]])
        return Anchor(seen[0], (view_top - self.tops[seen[0]]) / height, scaled=True)

    def view_top(self, anchor: Anchor) -> int:
        """The scroll position that restores `anchor`."""
        if anchor.entry >= len(self):
            return self.end
        offset = anchor.offset * self.heights[anchor.entry] if anchor.scaled else anchor.offset
        return round(self.tops[anchor.entry] + offset)


COLUMN_PX = 720
_MIN_MARGIN_PX = 40
_TOP_PX = 20
_BOTTOM_PX = 20
_AFTER_MESSAGE_PX = 16
_AFTER_ANSWER_PX = 8


class EntryColumn(QWidget):
    """The widget of the scroll area `area`; `pool` has the widgets of `entries`.

    `placed` is called when widgets may have moved.
    """

    def __init__(
        self,
        area: QScrollArea,
        entries: Sequence[Entry],
        pool: WidgetPool,
        placed: Callable[[], object],
    ) -> None:
        super().__init__()
        self._placed = placed
        self._area = area
        self._entries = entries
        self._pool = pool
        self._measured: list[bool] = []
        self.entry_layout = EntryLayout()
        # Only a person's scrolling ends it, not a change of the content's height.
        self.is_following = True  # stays scrolled to the end
        self._zoom = zoom()  # of the current layout
        self.column_px = 0  # width of the text column
        self.is_placing = False  # while the program moves the scroll bar
        self.setAutoFillBackground(True)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        area.setWidget(self)

    def clear(self) -> None:
        """Lay out an empty conversation and follow its end."""
        self.entry_layout, self._measured = EntryLayout(), []
        self.is_following = True
        self.place()

    # ---- viewport

    def view(self, views_more: float = 0.0) -> tuple[int, int]:
        """Top and bottom of the viewport, extended by `views_more` viewport heights on both sides."""
        top, height = self._area.verticalScrollBar().value(), self._area.viewport().height()
        more = round(views_more * height)
        return top - more, top + height + more

    def near(self, views_more: float = 0.0) -> range:
        """The indices of the entries in that view."""
        return self.entry_layout.between(*self.view(views_more))

    def go_to_end(self) -> None:
        self.is_placing = True
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.maximum())
        self.is_placing = False

    def go_to(self, index: int) -> None:
        """Scroll entry `index` to the top."""
        for _ in range(2):  # entries that come into view are measured, which may move it
            self._area.verticalScrollBar().setValue(round(self.entry_layout.tops[index]) - px(_TOP_PX))

    # ---- layout

    def height_changed(self, entry: Entry) -> None:
        """Lay out again after a change of `entry`, or only its widget if the height is unchanged."""
        before, entry.height_px = entry.height_px, None
        item = self._pool.items.get(entry)
        if before is not None and before == self._height(entry) and isinstance(item, AnswerView):
            item.arrange()
            self._placed()
        else:
            self.place()

    def forget_heights(self) -> None:
        """Discard all heights after a change of zoom or column width."""
        for entry in self._entries:
            entry.height_px = entry.estimated_px = None

    @property
    def _left_px(self) -> int:
        """The left edge of the texts: aligned with the composer, which has no scroll bar."""
        return (self._area.width() - self.column_px) // 2

    @property
    def text_right_px(self) -> int:
        """The right edge of the texts."""
        return self._left_px + self.column_px

    def place(self) -> None:
        """Lay out all entries. Only widgets whose geometry changed are moved."""
        view = self._area.viewport()
        width = max(1, view.width())
        column = max(120, min(px(COLUMN_PX), width - 2 * _MIN_MARGIN_PX))
        if zoom() != self._zoom:
            self._zoom = zoom()
            self.forget_heights()
            for shown in self._pool.items.values():
                shown.body.lay_out_again()
        if column != self.column_px:
            self.column_px = column
            self.forget_heights()
        anchor = None if self.is_following else self.entry_layout.anchor(*self.view(), self._measured)
        heights = [self._height(entry) for entry in self._entries]
        gaps = [
            px(_AFTER_ANSWER_PX if isinstance(e, AnswerEntry) else _AFTER_MESSAGE_PX) for e in self._entries
        ]
        self.entry_layout = EntryLayout(heights, gaps, px(_TOP_PX))
        self._measured = [entry.height_px is not None for entry in self._entries]
        # Scrolling before the widgets move lets Qt shift the pixels on the screen instead of painting.
        self.is_placing = True
        self.resize(width, max(self.entry_layout.end + px(_BOTTOM_PX), view.height()))
        if anchor:
            self._area.verticalScrollBar().setValue(self.entry_layout.view_top(anchor))
        self.is_placing = False
        if self.is_following:
            self.go_to_end()
        left = self._left_px
        for index, entry in enumerate(self._entries):
            item = self._pool.items.get(entry)
            if item is None or not item.is_ready:
                continue
            rect = QRect(
                left - MARGIN_PX,
                self.entry_layout.tops[index],
                column + 2 * MARGIN_PX,
                heights[index],
            )
            if item.geometry() != rect:
                item.setGeometry(rect)
            elif isinstance(item, AnswerView):
                item.arrange()
        self._placed()

    def _height(self, entry: Entry) -> int:
        if entry.height_px is None:
            entry.height_px = self._pool.height_px(entry, self.column_px)
            if entry.height_px is not None:
                return entry.height_px
            if entry.estimated_px is None:
                entry.estimated_px = entry.estimate_height_px(self.column_px, theme.zoom)
            return entry.estimated_px
        return entry.height_px


# In viewport heights: widgets are prepared within the first distance and deleted beyond the second.
_READY_VIEWS = 2.0
_KEPT_VIEWS = 4.0
# Per turn of the event loop; leaves time for painting at 60 Hz.
_PREPARE_S = 0.004


class Prefetch(QObject):
    """Prepares the widgets of visible entries at once and those nearby while idle; deletes distant ones.

    Entries in `unfinished` always have a widget.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        unfinished: Collection[AnswerEntry],
        pool: WidgetPool,
        column: EntryColumn,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._entries = entries
        self._unfinished = unfinished
        self._pool = pool
        self._column = column
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._prepare)

    def fill(self) -> None:
        """Prepare the visible entries now and start preparing those nearby."""
        for _ in range(len(self._entries)):
            seen = self._column.near()
            wanted = [*self._entries[seen.start : seen.stop], *self._unfinished]
            missing = [entry for entry in wanted if not self._pool.is_ready(entry)]
            if not missing:
                break
            for entry in missing:
                self._pool.ready(entry)
            self._column.place()
        if self._next_to_prepare() or self._next_to_drop():
            self._timer.start()

    def _next_to_prepare(self) -> Entry | None:
        """The entry near the view that is closest to it and not ready."""
        layout, (top, bottom) = self._column.entry_layout, self._column.view()
        near = self._column.near(_READY_VIEWS)
        waiting = [index for index in near if not self._pool.is_ready(self._entries[index])]

        def distance(index: int) -> int:
            return max(layout.tops[index] - bottom, top - layout.bottom(index))

        return self._entries[min(waiting, key=distance)] if waiting else None

    def _next_to_drop(self) -> Entry | None:
        kept = self._column.near(_KEPT_VIEWS)
        return self._pool.next_to_drop(self._entries[kept.start : kept.stop])

    def _prepare(self) -> None:
        """Prepare or delete for a few milliseconds."""
        until_s = time.perf_counter() + _PREPARE_S
        entry = self._next_to_prepare()
        while entry and time.perf_counter() < until_s:
            if self._pool.prepare_step(entry):
                self._pool.ready(entry)
                self._column.place()
                entry = self._next_to_prepare()
        far = None if entry else self._next_to_drop()
        if far:
            self._pool.drop(far)
        if entry or far:
            self._timer.start()
