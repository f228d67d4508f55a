"""DocumentMarks: the marks of the shown document; MarkedView: what both views of it do with the marks.

Positions are characters of the document's text. The two views, `DocumentView` and `FormattedView`, share one
`DocumentMarks`, so that the person can change between them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.chat.reading_map import Stretch
from app.panels import strings
from app.panels.document_text import NO_MATCHES, Matches


@dataclass
class DocumentMarks:
    """`stretches` are read, in order. Not `marked`: everything was read.

    A jump leads to stretch number `current` (−1: none) or to `place`; either stays until the person scrolls.
    """

    text: str = ""
    stretches: tuple[Stretch, ...] = ()
    marked: bool = False
    kept_only: bool = False
    current: int = -1
    place: Stretch | None = None
    matches: Matches = NO_MATCHES

    @property
    def hides(self) -> bool:
        """Whether skipped parts are hidden."""
        return self.kept_only and self.marked

    def read_in(self, first: int, last: int) -> Sequence[Stretch]:
        """The read stretches that overlap the characters [first, last)."""
        begin = bisect_right(self.stretches, first, key=lambda stretch: stretch.last)
        return self.stretches[begin : bisect_left(self.stretches, last, key=lambda stretch: stretch.first)]


class MarkedView:
    """Base class of the views; they implement the methods up to `announce`."""

    marks: DocumentMarks

    def load(self) -> None:
        """Show the text of the marks from its beginning."""
        raise NotImplementedError

    def refresh_shown(self) -> None:
        """Show which paragraphs are dim or hidden, and the marks."""
        raise NotImplementedError

    def refresh_marks(self) -> None:
        """Show the stretches, matches and place."""
        raise NotImplementedError

    def shows(self, character: int) -> bool:
        """Whether the paragraph of the character is displayed."""
        raise NotImplementedError

    def spans_of(self, pattern: re.Pattern[str]) -> Iterable[tuple[int, int]]:
        """Where the displayed text matches: characters of the document, end-exclusive."""
        raise NotImplementedError

    def visible_characters(self) -> tuple[int, int]:
        """The visible characters, end-exclusive."""
        raise NotImplementedError

    def scroll_to_character(self, character: int) -> None:
        """Show `character` with its line in the middle of the view."""
        raise NotImplementedError

    @property
    def selected(self) -> tuple[int, int] | None:
        """The selected characters, end-exclusive; None without a selection."""
        raise NotImplementedError

    def select(self, first: int, last: int) -> None:
        """Select these characters."""
        raise NotImplementedError

    def announce(self, words: str) -> None:
        """Have a screen reader read `words` as the view's description."""
        raise NotImplementedError

    # ---- display

    @property
    def text(self) -> str:
        return self.marks.text

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        return self.marks.stretches

    @property
    def current_stretch(self) -> int:
        return self.marks.current

    @property
    def place(self) -> Stretch | None:
        return self.marks.place

    @place.setter
    def place(self, place: Stretch | None) -> None:
        self.marks.place = place

    def show_text(self, text: str) -> None:
        """Show another document from its beginning, without marks."""
        marks = self.marks
        marks.text, marks.stretches, marks.marked = text, (), False
        marks.current, marks.place, marks.matches = -1, None, NO_MATCHES
        self.load()
        self.refresh_shown()

    def replaces(self, other: MarkedView) -> None:
        """Be shown in place of `other`, at the same passage and with the same selection."""
        (first, last), selected = other.visible_characters(), other.selected
        self.load()
        self.refresh_shown()
        marks = self.marks
        place = marks.place or (marks.stretches[marks.current] if marks.current >= 0 else None)
        middle = (place.first + place.last) // 2 if place else (first + last) // 2
        self.scroll_to_character(middle if place or first else 0)
        if selected:
            self.select(*selected)

    def show_stretches(self, stretches: Sequence[Stretch], marked: bool = True) -> None:
        """Set the read stretches. Not `marked`: everything was read, and nothing is dim."""
        marks = self.marks
        marks.stretches, marks.marked = tuple(stretches), marked
        marks.current, marks.place = -1, None
        self.refresh_shown()

    def set_kept_only(self, kept_only: bool) -> None:
        """Hide the paragraphs without read text."""
        if kept_only != self.marks.kept_only:
            first, _ = self.visible_characters()
            self.marks.kept_only = kept_only
            self.refresh_shown()
            self.scroll_to_character(first)

    def show_matches(self, matches: Matches) -> None:
        """Mark the matches of a search, and go to the current one."""
        self.marks.matches = matches
        if matches.current >= 0:
            self.scroll_to_character(matches.starts[matches.current])
        self.refresh_marks()

    @property
    def current_text(self) -> str:
        """The text of the current stretch or of the marked characters; empty without either."""
        place = self.place
        if place is None and self.current_stretch >= 0:
            place = self.stretches[self.current_stretch]
        return self.text[place.first : place.last].strip() if place else ""

    @property
    def selected_text(self) -> str:
        """The selected part of the document as it is in the file; empty without a selection."""
        first, last = self.selected or (0, 0)
        return self.text[first:last]

    # ---- places

    def jump(self, steps: int) -> bool:
        """Go to the next (1) or previous (−1) read stretch. Returns False if there is none."""
        if self.current_stretch >= 0:
            target = self.current_stretch + steps
        else:
            first, _ = self.visible_characters()
            ahead = bisect_left(self.stretches, first, key=lambda stretch: stretch.first)
            target = ahead if steps > 0 else ahead - 1
        if not 0 <= target < len(self.stretches):
            return False
        self.select_stretch(target)
        return True

    def select_stretch(self, number: int) -> None:
        """Go to a stretch and announce it to screen readers."""
        stretch = self.stretches[number]
        self.marks.place, self.marks.current = None, number
        words = self.text[stretch.first : stretch.last].strip()
        self.announce(strings.PASSAGE_OF.format(number=number + 1, count=len(self.stretches), text=words))
        self.scroll_to_character(stretch.first)

    def show_place(self, first: int, last: int) -> None:
        """Mark exactly these characters, in the middle of the view, and announce them to screen readers."""
        self.marks.place, self.marks.current = Stretch(first, last), -1
        self.announce(self.text[first:last].strip())
        self.scroll_to_character((first + last) // 2)

    def leave(self) -> None:
        """Unmark the target of the last jump: the person scrolls."""
        if self.place is not None or self.current_stretch >= 0:
            self.marks.current, self.marks.place = -1, None
            self.refresh_marks()
