"""ReadingColumn: where the messages stand under each other, in a column centred in the view.

Widgets are placed by hand. Heights that have not been measured are estimated, and while measured
ones come in, what the reader looks at stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtWidgets import QScrollArea, QWidget

from app.chat.answer.answer import AnswerView
from app.chat.answer.entry import Entry, Reply
from app.chat.transcript.entry_layout import EntryLayout
from app.chat.transcript.follow import Follow
from app.chat.transcript.widget_pool import WidgetPool
from app.theme.theme import Theme
from app.theme.zoom import px, zoom

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
