"""TranscriptSelection: the selection in a conversation, in one entry or across several.

A selection in one entry belongs to its text widget. One across several entries is kept here, because most
entries have no widget. Every existing widget shows its part, and copying in any of them copies all parts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from PySide6.QtCore import QObject, QPoint
from PySide6.QtWidgets import QScrollArea

from app.chat import strings
from app.chat.entry import AnswerEntry, Entry, QuestionEntry
from app.chat.entry_column import WidgetPool
from app.controls.scroll_bar import DragScroll
from app.richtext.markdown.markdown import pieces_of
from app.richtext.markdown.piece import Piece
from app.richtext.selection import Move, TextPlace, TextSelection, everything, moved, selected_pieces, text_of
from app.richtext.text_canvas import TextCanvas, announce

_START = TextPlace(0, 0)
_END = TextPlace(sys.maxsize, 0)
_SCROLL_MARGIN_PX = 30


class EntryPlace(NamedTuple):
    """A text position in the entry with index `entry`; sorts in reading order."""

    entry: int
    place: TextPlace


class TranscriptSelection(QObject):
    """The selection of the transcript `area`. `ready` returns the laid-out text widget of an entry."""

    def __init__(
        self,
        area: QScrollArea,
        entries: Sequence[Entry],
        pool: WidgetPool,
        ready: Callable[[Entry], TextCanvas],
    ) -> None:
        super().__init__(area)
        self._area = area
        self._entries = entries
        self._pool = pool
        self._ready = ready
        self._pressed: EntryPlace | None = None  # the last mouse press
        self._ends: tuple[EntryPlace, EntryPlace] | None = None  # anchor and head across entries
        self._at = QPoint()
        self._drag = DragScroll(area, self._follow_mouse)

    @property
    def is_wide(self) -> bool:
        """Whether the selection spans several entries."""
        return self._ends is not None

    @property
    def text(self) -> str:
        """The selected text; parts of different entries are separated by an empty line."""
        return "\n\n".join(filter(None, map(text_of, self._parts())))

    @property
    def pieces(self) -> list[Piece]:
        """The selected pieces and parts of pieces."""
        return [piece for part in self._parts() for piece in part]

    def _parts(self) -> list[Sequence[Piece]]:
        """The selected pieces of each entry that has some."""
        if self._ends is None:
            chosen = (item.body.selected_pieces for item in self._pool.items.values())
            return list(filter(None, chosen))[:1]
        low, high = sorted(self._ends)
        return list(filter(None, map(self._pieces_of, self._entries[low.entry : high.entry + 1])))

    def part(self, entry: Entry) -> TextSelection | None:
        """The part of a selection across entries that is in `entry`."""
        if self._ends is None:
            return None
        low, high = sorted(self._ends)
        number = self._entries.index(entry)
        if not low.entry <= number <= high.entry:
            return None
        start = low.place if number == low.entry else _START
        return TextSelection(start, high.place if number == high.entry else self._last(entry))

    def clear(self) -> None:
        """Discard the selection, for another conversation."""
        self._drag.stop()
        self._pressed = self._ends = None

    # ---- events of the text widgets

    def begin(self, canvas: TextCanvas, place: TextPlace, extends: bool) -> bool:
        """Handle a mouse press at `place`; `extends` with Shift. Returns True if it extended a selection."""
        here = EntryPlace(self._number(canvas), place)
        anchor = self._anchor()
        if extends and anchor is not None:
            self._pressed = anchor
            self._reach(anchor, here)
            return True
        self._pressed = here
        self._ends = None
        self._show(but=canvas)
        return False

    def drag(self, at: QPoint) -> None:
        """Extend the selection to the global point `at` of the mouse."""
        self._at = at
        self._drag.drag(at)
        self._follow_mouse()

    def stop(self) -> None:
        """Stop scrolling for a drag."""
        self._drag.stop()

    def release(self) -> None:
        """Handle the release of the mouse button."""
        self.stop()
        if self._ends:
            self._announce()

    def extend(self, canvas: TextCanvas, move: Move) -> None:
        """Move the head of the selection; without a selection it begins at the start of `canvas`."""
        if self._ends:
            anchor, head = self._ends
        else:
            number, chosen = self._number(canvas), canvas.selection or TextSelection(_START, _START)
            anchor, head = EntryPlace(number, chosen.anchor), EntryPlace(number, chosen.head)
        head = self._moved(head, move)
        self._reach(anchor, head)
        self._see(head)

    def select_all(self) -> None:
        entries = self._entries
        self._reach(EntryPlace(0, _START), EntryPlace(len(entries) - 1, self._last(entries[-1])))
        if self._ends:
            self._announce()

    # ---- inside

    def _anchor(self) -> EntryPlace | None:
        """The anchor of the selection, or the last press."""
        if self._ends:
            return self._ends[0]
        for number, entry in enumerate(self._entries):
            item = self._pool.items.get(entry)
            if item and item.body.selection:
                return EntryPlace(number, item.body.selection.anchor)
        return self._pressed

    def _follow_mouse(self) -> None:
        here = self._spot_at(self._at)
        if self._pressed and here:
            self._reach(self._pressed, here)

    def _spot_at(self, at: QPoint) -> EntryPlace | None:
        """The text position nearest to the global point `at`, among the entries with a widget."""
        near: list[tuple[int, EntryPlace]] = []
        for number, entry in enumerate(self._entries):
            item = self._pool.items.get(entry)
            if item is None or item.isHidden():
                continue
            y = item.mapFromGlobal(at).y()
            place = item.body.place_at(item.body.mapFromGlobal(at).toPointF(), between=True)
            if place is not None:
                near.append((max(-y, y - item.height(), 0), EntryPlace(number, place)))
        return min(near)[1] if near else None

    def _reach(self, anchor: EntryPlace, head: EntryPlace) -> None:
        """Select from `anchor` to `head`."""
        if anchor.entry != head.entry:
            self._ends = (anchor, head)
            self._show()
            return
        self._ends = None
        canvas = self._ready(self._entries[head.entry])
        self._show(but=canvas)
        canvas.show_selection(TextSelection(anchor.place, head.place))

    def _show(self, but: TextCanvas | None = None) -> None:
        for entry, item in self._pool.items.items():
            if item.body is not but:
                item.body.show_selection(self.part(entry))

    def _moved(self, head: EntryPlace, move: Move) -> EntryPlace:
        """`head` after `move`, which continues from one entry to the next."""
        canvas = self._ready(self._entries[head.entry])
        place = min(head.place, everything(canvas.pieces).end)
        to = moved(canvas.boxes, place, move)
        if to != place or move in ("home", "end"):
            return EntryPlace(head.entry, to)
        back = move in ("left", "word_left", "up", "first")
        others = range(head.entry - 1, -1, -1) if back else range(head.entry + 1, len(self._entries))
        worded = [number for number in others if self._entries[number].source]
        if not worded:
            return EntryPlace(head.entry, to)
        number = worded[-1] if move in ("first", "last") else worded[0]
        canvas = self._ready(self._entries[number])
        at_end = back if move not in ("first", "last") else move == "last"
        return EntryPlace(number, moved(canvas.boxes, _START, "last" if at_end else "first"))

    def _see(self, spot: EntryPlace) -> None:
        canvas = self._ready(self._entries[spot.entry])
        canvas.scroll_sideways(spot.place.piece, spot.place.char, spot.place.char)
        rects = canvas.rects_of(spot.place.piece, spot.place.char, spot.place.char)
        if rects:
            point = canvas.mapTo(self._area.viewport(), rects[0].center().toPoint())
            # `ensureVisible` takes coordinates of the scrolled widget.
            y = point.y() + self._area.verticalScrollBar().value()
            self._area.ensureVisible(0, y, 0, _SCROLL_MARGIN_PX)

    def _number(self, canvas: TextCanvas) -> int:
        owner = next(entry for entry, item in self._pool.items.items() if item.body is canvas)
        return self._entries.index(owner)

    def _last(self, entry: Entry) -> TextPlace:
        """The end of `entry`, or a place after any text if it is not laid out yet."""
        item = self._pool.items.get(entry)
        return everything(item.body.pieces).end if item and item.is_ready else _END

    def _pieces_of(self, entry: Entry) -> Sequence[Piece]:
        item, part = self._pool.items.get(entry), self.part(entry)
        if isinstance(entry, QuestionEntry) and entry.is_long and part and part.end >= self._last(entry):
            return pieces_of(entry.source)  # selected beyond its shown part
        if item and item.is_ready:
            return item.body.selected_pieces
        if part is None:
            return ()
        if isinstance(entry, AnswerEntry):
            return selected_pieces(entry.parse().pieces, part, entry.folds)
        return selected_pieces(pieces_of(entry.message.content), part)

    def _announce(self) -> None:
        assert self._ends
        low, high = sorted(self._ends)
        announce(self._area, strings.SELECTED_MESSAGES.format(count=high.entry - low.entry + 1))
