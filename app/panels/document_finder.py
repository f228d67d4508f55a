"""DocumentFinder: searches the displayed document and steps through the matches.

After the matches come passages of similar meaning: `similar_wanted` requests them after a pause in typing,
`show_similar` receives them.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QTimer, Signal

from app.panels import strings
from app.panels.document_blocks import NONE, Matches, matches_of
from app.panels.document_view import DocumentView
from app.richtext.find_bar import HEIGHT_PX, FindBar
from app.theme.theme import Theme
from app.theme.zoom import px

_MARGIN_PX = 12
_SIMILAR_AFTER_MS = 400
_LEAST_CHARACTERS = 3


class DocumentFinder(QObject):
    """Owns the bar over the view; the view scrolls and marks."""

    similar_wanted = Signal(str)

    def __init__(self, theme: Theme, view: DocumentView) -> None:
        super().__init__(view)
        self._view = view
        self._words = self._similar = self._shown = NONE
        self._timer = QTimer(self, interval=_SIMILAR_AFTER_MS, singleShot=True)
        self._timer.timeout.connect(self._want_similar)
        self.bar = FindBar(theme, view, strings.FIND_IN_DOCUMENT)
        self.bar.hide()
        self.bar.text_changed.connect(self.search)
        self.bar.step_requested.connect(self.step)
        self.bar.closed.connect(self.close)
        view.installEventFilter(self)

    @property
    def is_open(self) -> bool:
        """Whether the bar is open."""
        return self.bar.is_open

    def open(self) -> None:
        """Show the bar with the last query."""
        if not self.is_open:
            self.search(self.bar.field.text())
        self._view.set_room_above(px(HEIGHT_PX) + 2 * _MARGIN_PX)
        self._place()
        self.bar.open()

    def close(self) -> None:
        """Hide the bar and the marks; the focus returns."""
        if not self.is_open:
            return
        self._timer.stop()
        self._words = self._similar = NONE
        self._show(NONE)
        self._view.set_room_above(0)
        self.bar.leave()

    def forget(self) -> None:
        """Clear the query: another chat is open."""
        self.close()
        self.bar.field.clear()

    def refresh(self) -> None:
        """Search again: another text or another part of it is displayed."""
        if self.is_open:
            self.search(self.bar.field.text())

    def search(self, needle: str) -> None:
        """Search for `needle` and go to the first match from the visible text on."""
        view = self._view
        first, _ = view.visible_characters()
        self._words, self._similar = matches_of(view.text, needle, view.shows, first), NONE
        self._show(self._words)
        self._timer.stop()
        if len(needle.strip()) >= _LEAST_CHARACTERS:
            self._timer.start()

    def show_similar(self, needle: str, spans: Sequence[tuple[int, int]]) -> None:
        """Add passages (end-exclusive characters) similar to `needle`, unless the query has changed.

        Those that contain a match are left out. Goes to the first one if there is no match.
        """
        if not self.is_open or needle != self.bar.field.text():
            return
        on_similar = self._shown is self._similar
        words = self._words.starts
        found = sorted(
            (start, end)
            for start, end in spans
            if self._view.shows(start) and not any(start <= word < end for word in words)
        )
        self._similar = NONE
        if found:
            starts, ends = zip(*found)
            self._similar = Matches(starts, ends, 0)
        self._show(self._similar if on_similar or not words else self._shown)

    def step(self, forward: bool = True) -> None:
        """Go to the next or previous match; similar passages follow the last match."""
        matches, similar = len(self._words.starts), len(self._similar.starts)
        if matches + similar == 0:
            return
        number = self._shown.current + (matches if similar and self._shown is self._similar else 0)
        number = (number + (1 if forward else -1)) % (matches + similar)
        if number < matches:
            self._words = replace(self._words, current=number)
            self._show(self._words)
        else:
            self._similar = replace(self._similar, current=number - matches)
            self._show(self._similar)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.is_open:
            self._place()
        return False

    def _show(self, matches: Matches) -> None:
        self._shown = matches
        count, similar = len(self._words.starts), len(self._similar.starts)
        number = matches.current + 1 + (count if similar and matches is self._similar else 0)
        self.bar.show_count(number, count, self._words.whole, similar)
        self._view.show_matches(matches)

    def _want_similar(self) -> None:
        self.similar_wanted.emit(self.bar.field.text())

    def _place(self) -> None:
        """Use the whole width: the view is narrow."""
        self.bar.resize(self._view.viewport().width() - 2 * _MARGIN_PX, px(HEIGHT_PX))
        self.bar.move(_MARGIN_PX, _MARGIN_PX)
