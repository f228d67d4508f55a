"""Finder: carries a search through the conversation: in slices, on the screen, from match to match.

It owns the bar and the search; what stands where and how to get there is the transcript's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.chat.answer.entry import Entry
from app.chat.transcript.find import Find
from app.richtext.canvas.find_bar import HEIGHT_PX, WIDTH_PX, FindBar
from app.richtext.canvas.selection import Match
from app.theme.theme import Theme
from app.theme.zoom import px

_SLICE_S = 0.005
_MARGIN_PX = 12


class Finder(QObject):
    """`marks_changed` asks for painting, `shown` for scrolling to a match."""

    marks_changed = Signal()
    opened = Signal(bool)  # or closed: it takes the first lines' place, or gives it back
    shown = Signal(object, object)  # Entry, Match

    def __init__(
        self,
        theme: Theme,
        area: QWidget,
        entries: Callable[[], Sequence[Entry]],
        first_seen: Callable[[], int],
    ) -> None:
        super().__init__(area)
        self._area = area
        self._entries = entries
        self._first_seen = first_seen
        self._find = Find()
        self._went_to: tuple[Entry, Match] | None = None
        self.bar = FindBar(theme, area)
        self.bar.hide()
        self.bar.text_changed.connect(self.search)
        self.bar.step_requested.connect(self.step)
        self.bar.closed.connect(self.close)
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._look)

    @property
    def is_open(self) -> bool:
        """Whether the bar is shown."""
        return self.bar.is_open

    def open(self) -> None:
        """Show the bar; look for what was looked for last."""
        if not self.is_open:
            self.search(self.bar.field.text())
        self.place()
        self.bar.open()
        self.opened.emit(True)

    def close(self) -> None:
        """Away with bar and marks; the keyboard goes back to where it was."""
        if not self.is_open:
            return
        self._stop()
        self.bar.leave()
        self.opened.emit(False)

    def forget(self) -> None:
        """Another chat is shown: nothing is looked for in it yet."""
        self.close()
        self.bar.field.clear()

    def reset(self) -> None:
        """Another conversation: the search starts anew in it."""
        self._stop()
        if self.is_open:
            self.search(self.bar.field.text())

    def search(self, needle: str) -> None:
        """Look for `needle`, first in what is seen."""
        self._went_to = None
        self._find.start(needle, self._entries(), self._first_seen())
        self._timer.start()
        if not needle.strip():
            self._show()

    def look_again(self, entry: Entry) -> None:
        """`entry` has more text now."""
        if self.is_open:
            self._find.look_again(entry)
            self._timer.start()

    def step(self, forward: bool = True) -> None:
        """To the next match, or back."""
        self._find.step(forward)
        self._show()

    def marks(self, entry: Entry) -> tuple[tuple[Match, ...], Match | None]:
        """The matches in `entry`, and which of them is looked at."""
        current = self._find.current
        return self._find.matches(entry), current[1] if current and current[0] is entry else None

    @property
    def room_px(self) -> int:
        """The height that the bar takes, with its margins."""
        return px(HEIGHT_PX) + 2 * _MARGIN_PX

    def place(self) -> None:
        """Into the right upper corner."""
        width = min(px(WIDTH_PX), self._area.width() - 2 * _MARGIN_PX)
        self.bar.resize(width, px(HEIGHT_PX))
        self.bar.move(self._area.width() - width - 2 * _MARGIN_PX, _MARGIN_PX)

    def _stop(self) -> None:
        self._timer.stop()
        self._find.start("", (), 0)
        self._went_to = None
        self.marks_changed.emit()

    def _look(self) -> None:
        until_s = time.perf_counter() + _SLICE_S
        while not self._find.look() and time.perf_counter() < until_s:
            pass
        self._show()
        if not self._find.is_done:
            self._timer.start()

    def _show(self) -> None:
        find = self._find
        self.bar.show_count(find.number, find.count, find.is_done)
        self.marks_changed.emit()
        if find.current and find.current != self._went_to:
            self._went_to = find.current
            self.shown.emit(*find.current)
