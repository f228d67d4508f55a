"""DocumentFinder: looks for words in the document that is shown, from match to match."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject

from app.panels.document import strings
from app.panels.document.find import NONE, Matches, matches_of
from app.panels.document.view import DocumentView
from app.richtext.canvas.find_bar import HEIGHT_PX, FindBar
from app.theme.theme import Theme
from app.theme.zoom import px

_MARGIN_PX = 12


class DocumentFinder(QObject):
    """Owns the bar, which lies over the view; where things are in the text is the view's."""

    def __init__(self, theme: Theme, view: DocumentView) -> None:
        super().__init__(view)
        self._view = view
        self._matches = NONE
        self.bar = FindBar(theme, view, strings.FIND_IN_DOCUMENT)
        self.bar.hide()
        self.bar.text_changed.connect(self.search)
        self.bar.step_requested.connect(self.step)
        self.bar.closed.connect(self.close)
        view.installEventFilter(self)

    @property
    def is_open(self) -> bool:
        """Whether the bar is shown."""
        return self.bar.is_open

    def open(self) -> None:
        """Show the bar; look for what was looked for last."""
        if not self.is_open:
            self.search(self.bar.field.text())
        self._view.set_room_above(px(HEIGHT_PX) + 2 * _MARGIN_PX)
        self._place()
        self.bar.open()

    def close(self) -> None:
        """Away with bar and marks; the keyboard goes back to where it was."""
        if not self.is_open:
            return
        self._show(NONE)
        self._view.set_room_above(0)
        self.bar.leave()

    def forget(self) -> None:
        """Another chat is shown: nothing is looked for in its documents yet."""
        self.close()
        self.bar.field.clear()

    def look_again(self) -> None:
        """Another text is shown, or more or less of it."""
        if self.is_open:
            self.search(self.bar.field.text())

    def search(self, needle: str) -> None:
        """Look for `needle`; the first match from what is seen on is gone to."""
        view = self._view
        first, _ = view.visible_characters()
        self._show(matches_of(view.text, needle, view.shows, first))

    def step(self, forward: bool = True) -> None:
        """To the next match, or back."""
        self._show(self._matches.stepped(forward))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.is_open:
            self._place()
        return False

    def _show(self, matches: Matches) -> None:
        self._matches = matches
        self.bar.show_count(matches.current + 1, len(matches.starts), matches.whole)
        self._view.show_matches(matches)

    def _place(self) -> None:
        """Over the whole width: the view is narrow."""
        self.bar.resize(self._view.viewport().width() - 2 * _MARGIN_PX, px(HEIGHT_PX))
        self.bar.move(_MARGIN_PX, _MARGIN_PX)
