"""ReadingColumn: where the messages stand under each other, in a column centred in the view.

Widgets are placed by hand. Heights that have not been measured are estimated, and while measured
ones come in, what the reader looks at stays where it is.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from PySide6.QtCore import QObject, QRect, Qt, QTimer, Signal
from PySide6.QtWidgets import QScrollArea, QWidget

from app.chat.answer import AnswerView
from app.chat.entry import Entry, Reply
from app.chat.widget_pool import WidgetPool
from app.theme.theme import Theme
from app.theme.zoom import px, zoom


class Anchor(NamedTuple):
    """Something the reader looks at: `offset` px (or, `scaled`, that share) of entry `place`'s
    height is above the view's top."""

    place: int
    offset: float
    scaled: bool = False


class EntryLayout:
    """`heights[i]` high entries with `gaps[i]` under them, the first one `first_px` from the top."""

    def __init__(self, heights: Sequence[int] = (), gaps: Sequence[int] = (), first_px: int = 0) -> None:
        self.heights = list(heights)
        steps = (height + gap for height, gap in zip(heights, gaps, strict=True))
        *self.tops, self.end = accumulate(steps, initial=first_px)

    def __len__(self) -> int:
        return len(self.tops)

    def bottom(self, index: int) -> int:
        """Where entry `place` ends."""
        return self.tops[index] + self.heights[index]

    def between(self, low: float, high: float) -> range:
        """The entries that touch [low, high)."""
        first = max(0, bisect_right(self.tops, low) - 1)
        if first < len(self) and self.bottom(first) <= low:
            first += 1
        return range(first, max(first, bisect_left(self.tops, high)))

    def anchor(self, view_top: float, view_bottom: float, measured: Sequence[bool]) -> Anchor | None:
        """What must not move: the first measured entry in the view, else the share of the first one."""
        seen = self.between(view_top, view_bottom)
        for index in seen:
            if measured[index]:
                return Anchor(index, view_top - self.tops[index])
        if not seen:
            return None
        height = max(1, self.heights[seen[0]])
        return Anchor(seen[0], (view_top - self.tops[seen[0]]) / height, scaled=True)

    def view_top(self, anchor: Anchor) -> int:
        """Where the view has to start so that `anchor` is where it was."""
        if anchor.place >= len(self):
            return self.end
        offset = anchor.offset * self.heights[anchor.place] if anchor.scaled else anchor.offset
        return round(self.tops[anchor.place] + offset)


class Follow:
    """`following` is what counts."""

    def __init__(self) -> None:
        self.following = True

    def scrolled(self, value: int, maximum: int) -> bool:
        """The reader scrolled to `value` of `maximum`. Whether `following` changed."""
        before = self.following
        self.following = value >= maximum
        return self.following != before

    def follow(self) -> bool:
        """Go back to the end. Whether `following` changed."""
        before, self.following = self.following, True
        return not before


COLUMN_PX = 720
_MIN_MARGIN_PX = 40
_TOP_PX = 20
_BOTTOM_PX = 20
_AFTER_MESSAGE_PX = 16
_AFTER_ANSWER_PX = 8


class ReadingColumn(QWidget):
    """What the scroll area `area` scrolls. `entries` are all there are, `pool` has their widgets."""

    placed = Signal()  # widgets may have moved

    def __init__(self, theme: Theme, area: QScrollArea, entries: Sequence[Entry], pool: WidgetPool) -> None:
        super().__init__()
        self._theme = theme
        self._area = area
        self._entries = entries
        self._pool = pool
        self._measured: list[bool] = []
        self.entry_layout = EntryLayout()
        self.follow = Follow()
        self._zoom = zoom()  # that texts are laid out at
        self.column_px = 0  # how wide texts are laid out
        self.is_placing = False  # while the scroll bar moves by itself, not by the reader
        self.setAutoFillBackground(True)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        area.setWidget(self)

    def clear(self) -> None:
        """Another conversation, from its end."""
        self.entry_layout, self._measured = EntryLayout(), []
        self.follow.follow()
        self.place()

    # ---- what is seen

    def view(self, views_more: float = 0.0) -> tuple[int, int]:
        """Top and bottom of what is seen, and so many views above and below it."""
        top, height = self._area.verticalScrollBar().value(), self._area.viewport().height()
        more = round(views_more * height)
        return top - more, top + height + more

    def near(self, views_more: float = 0.0) -> range:
        """The numbers of the entries that are seen, or so many views around."""
        return self.entry_layout.between(*self.view(views_more))

    def go_to_end(self) -> None:
        """Scroll there."""
        self.is_placing = True
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.maximum())
        self.is_placing = False

    def go_to(self, number: int) -> None:
        """Scroll so that entry `number` begins at the top."""
        for _ in range(2):  # what comes into view is measured, and may move it
            self._area.verticalScrollBar().setValue(round(self.entry_layout.tops[number]) - px(_TOP_PX))

    # ---- place

    def height_changed(self, entry: Entry) -> None:
        """Most of what an answer gets still fits into its last line: then nothing else has to move."""
        before, entry.height_px = entry.height_px, None
        item = self._pool.items.get(entry)
        if before is not None and before == self._height(entry) and isinstance(item, AnswerView):
            item.arrange()
            self.placed.emit()
        else:
            self.place()

    def forget_heights(self) -> None:
        """Texts have another size or another width."""
        for entry in self._entries:
            entry.height_px = entry.guess_px = None

    def place(self) -> None:
        """Give every entry its place; only widgets whose place or height changed are moved."""
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
        anchor = None if self.follow.following else self.entry_layout.anchor(*self.view(), self._measured)
        heights = [self._height(entry) for entry in self._entries]
        gaps = [px(_AFTER_ANSWER_PX if isinstance(e, Reply) else _AFTER_MESSAGE_PX) for e in self._entries]
        self.entry_layout = EntryLayout(heights, gaps, px(_TOP_PX))
        self._measured = [entry.height_px is not None for entry in self._entries]
        # The column grows while the scroll bar stands still: that is not the reader scrolling.
        # It is scrolled before anything in it moves, so that the screen can be shifted as it is.
        self.is_placing = True
        self.resize(width, max(self.entry_layout.end + px(_BOTTOM_PX), view.height()))
        if anchor:
            self._area.verticalScrollBar().setValue(self.entry_layout.view_top(anchor))
        self.is_placing = False
        if self.follow.following:
            self.go_to_end()
        left = (self._area.width() - column) // 2  # as what stands below it, which has no scroll bar
        for index, entry in enumerate(self._entries):
            item = self._pool.items.get(entry)
            if item is None or not item.is_ready:
                continue
            place = QRect(
                left - item.OUTDENT_PX,
                self.entry_layout.tops[index],
                column + 2 * item.OUTDENT_PX,
                heights[index],
            )
            if item.geometry() != place:
                item.setGeometry(place)
            elif isinstance(item, AnswerView):
                item.arrange()
        self.placed.emit()

    def _height(self, entry: Entry) -> int:
        if entry.height_px is None:
            entry.height_px = self._pool.height_px(entry, self.column_px)
            if entry.height_px is not None:
                return entry.height_px
            if entry.guess_px is None:
                entry.guess_px = entry.estimate_px(self.column_px, self._theme.zoom)
            return entry.guess_px
        return entry.height_px


# Widgets are got ready this many views around the one that is seen, and dropped beyond the other.
_READY_VIEWS = 2.0
_KEPT_VIEWS = 4.0
# Of each turn of the event loop, so that a frame at 60 Hz still has room for its painting.
_READYING_S = 0.004


class Prefetch(QObject):
    """Of `entries`, for the `column` that shows them. Those that are `unfinished` always have a widget."""

    def __init__(
        self,
        entries: Sequence[Entry],
        unfinished: Collection[Reply],
        pool: WidgetPool,
        column: ReadingColumn,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._entries = entries
        self._unfinished = unfinished
        self._pool = pool
        self._column = column
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._get_ready)

    def fill(self) -> None:
        """Whatever is seen gets its widget now; what is near, soon."""
        for _ in range(len(self._entries)):
            seen = self._column.near()
            wanted = [*self._entries[seen.start : seen.stop], *self._unfinished]
            missing = [entry for entry in wanted if not self._pool.is_ready(entry)]
            if not missing:
                break
            for entry in missing:
                self._pool.ready(entry)
            self._column.place()
        if self._next_to_ready() or self._next_to_drop():
            self._timer.start()

    def _next_to_ready(self) -> Entry | None:
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

    def _get_ready(self) -> None:
        """A few milliseconds of work ahead of the reader."""
        until_s = time.perf_counter() + _READYING_S
        entry = self._next_to_ready()
        while entry and time.perf_counter() < until_s:
            if self._pool.ready_some(entry):
                self._pool.ready(entry)
                self._column.place()
                entry = self._next_to_ready()
        far = None if entry else self._next_to_drop()
        if far:
            self._pool.drop(far)
        if entry or far:
            self._timer.start()
