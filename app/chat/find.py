"""Find in a conversation: the search, which runs in slices, and the find bar.

Matches are found in the displayed text, not in its Markdown source, and in the names of images. Case is
ignored, and any white space matches any other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QAbstractScrollArea

from app.chat import strings
from app.chat.entry import AnswerEntry, Entry
from app.richtext.find_bar import Finder
from app.richtext.markdown.markdown import pieces_of
from app.richtext.selection import Match, matches_in


class NameMatch(NamedTuple):
    """Image number `image` of a message has the searched words in its name."""

    image: int


Found = Match | NameMatch


def _found_in(entry: Entry, needle: str) -> tuple[Found, ...]:
    if isinstance(entry, AnswerEntry):
        return matches_in(entry.text.pieces, needle)
    wanted = " ".join(needle.casefold().split())
    names = (each.name.casefold() for each in entry.message.images)
    named = (NameMatch(number) for number, name in enumerate(names) if wanted in name)
    return (*named, *matches_in(pieces_of(entry.message.content), needle))


class Find:
    """Searches entry by entry: `start`, then `search_step` until it returns True. No Qt.

    Matches can be stepped through while the search is running.
    """

    def __init__(self) -> None:
        self.needle = ""
        self._entries: list[Entry] = []
        self._waiting: list[Entry] = []
        self._found: dict[Entry, tuple[Found, ...]] = {}
        self.current: tuple[Entry, Found] | None = None

    def start(self, needle: str, entries: Sequence[Entry], first: int) -> None:
        """Search for `needle` in `entries`, beginning with index `first`."""
        self.needle = needle
        self._entries = list(entries)
        self._waiting = [*entries[first:], *entries[:first]] if needle.strip() else []
        self._found = {}
        self.current = None

    def refresh(self, entry: Entry) -> None:
        """Search `entry` again after its text changed."""
        if not self.needle.strip():
            return
        if entry not in self._entries:
            self._entries.append(entry)
        if entry not in self._waiting:
            self._waiting.append(entry)

    def search_step(self) -> bool:
        """Search the next entry, or parse a part of it. Returns True once all are searched."""
        if self._waiting:
            entry = self._waiting[0]
            if isinstance(entry, AnswerEntry) and not entry.is_parsed and not entry.parse_step():
                return False
            self._waiting.pop(0)
            found = self._found[entry] = _found_in(entry, self.needle)
            if self.current is None and found:
                self.current = (entry, found[0])
            elif self.current and self.current[0] is entry and self.current[1] not in found:
                self.current = (entry, found[0]) if found else None
        return not self._waiting

    def matches(self, entry: Entry) -> tuple[Found, ...]:
        return self._found.get(entry, ())

    @property
    def is_done(self) -> bool:
        """Whether all entries are searched."""
        return not self._waiting

    @property
    def all(self) -> list[tuple[Entry, Found]]:
        """All matches found until now, in reading order."""
        return [(entry, match) for entry in self._entries for match in self.matches(entry)]

    @property
    def count(self) -> int:
        """The number of matches found until now."""
        return sum(map(len, self._found.values()))

    @property
    def number(self) -> int:
        """The number of the current match, from 1; 0 if there is none."""
        return self.all.index(self.current) + 1 if self.current else 0

    def step(self, forward: bool) -> None:
        """Go to the next or the previous match, wrapping around."""
        found = self.all
        if found:
            number = (self.number or (0 if forward else 1)) - 1
            self.current = found[(number + (1 if forward else -1)) % len(found)]


_SLICE_S = 0.005


class Searched(Protocol):
    """A view of a conversation that can be searched."""

    def find_start(self) -> tuple[Sequence[Entry], int]: ...
    def show_matches(self) -> None: ...
    def go_to_match(self, entry: Entry, match: Found) -> None: ...


class ChatFinder(Finder):
    """Searches the entries of `searched` while idle, and shows them there. `parent` gets the bar."""

    def __init__(self, searched: Searched, parent: QAbstractScrollArea) -> None:
        super().__init__(parent, strings.FIND_IN_CHAT)
        self._searched = searched
        self._find = Find()
        self._went_to: tuple[Entry, Found] | None = None
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._search_slice)

    def stop(self) -> None:
        self._timer.stop()
        self._find.start("", (), 0)
        self._went_to = None
        self._searched.show_matches()

    def search_again(self) -> None:
        self.stop()
        super().search_again()

    def search(self, needle: str) -> None:
        self._went_to = None
        self._find.start(needle, *self._searched.find_start())
        self._timer.start()
        if not needle.strip():
            self._show()

    def refresh(self, entry: Entry) -> None:
        """Search `entry` again after its text changed."""
        if self._find.needle:
            self._find.refresh(entry)
            self._timer.start()

    def step(self, forward: bool = True) -> None:
        self._find.step(forward)
        self._show()

    def marks(self, entry: Entry) -> tuple[tuple[Match, ...], Match | None]:
        """The matches in the text of `entry`, and the current one if it is there."""
        found, current = self._find.matches(entry), self._find.current
        at = current[1] if current and current[0] is entry else None
        return tuple(each for each in found if isinstance(each, Match)), at if isinstance(at, Match) else None

    def named(self, entry: Entry) -> tuple[set[int], int | None]:
        """The images in `entry` whose names match, by their numbers, and the current one if it is there."""
        found, current = self._find.matches(entry), self._find.current
        at = current[1] if current and current[0] is entry else None
        names = {each.image for each in found if isinstance(each, NameMatch)}
        return names, at.image if isinstance(at, NameMatch) else None

    def _search_slice(self) -> None:
        until_s = time.perf_counter() + _SLICE_S
        while not self._find.search_step() and time.perf_counter() < until_s:
            pass
        self._show()
        if not self._find.is_done:
            self._timer.start()

    def _show(self) -> None:
        find = self._find
        self.bar.show_count(find.number, find.count, find.is_done)
        self._searched.show_matches()
        if find.current and find.current != self._went_to:
            self._went_to = find.current
            self._searched.go_to_match(*find.current)
