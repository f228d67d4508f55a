"""Finding words in a conversation: where they are, and which of the places is looked at. No Qt.

Matches are found in what is seen, not in the Markdown behind it. Capitals do not matter, and any
white space matches any other. `Find` searches entry by entry, so that a long conversation can be
searched in slices; while it is at it, what was found so far can be walked through.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.chat.answer.entry import Entry, Reply
from app.richtext.canvas.selection import Match, matches_in
from app.richtext.markdown.user_text import pieces_of


class Find:
    """`start`, then `look` until it says True; `step` goes from match to match."""

    def __init__(self) -> None:
        self.needle = ""
        self._entries: list[Entry] = []
        self._waiting: list[Entry] = []
        self._found: dict[Entry, tuple[Match, ...]] = {}
        self.current: tuple[Entry, Match] | None = None

    def start(self, needle: str, entries: Sequence[Entry], first: int) -> None:
        """Look for `needle` in `entries`, from number `first` on and then from the beginning."""
        self.needle = needle
        self._entries = list(entries)
        self._waiting = [*entries[first:], *entries[:first]] if needle.strip() else []
        self._found = {}
        self.current = None

    def look_again(self, entry: Entry) -> None:
        """`entry` has other text now."""
        if not self.needle.strip():
            return
        if entry not in self._entries:
            self._entries.append(entry)
        if entry not in self._waiting:
            self._waiting.append(entry)

    def look(self) -> bool:
        """Search one entry more, or read one part more of it; whether that was all."""
        if self._waiting:
            entry = self._waiting[0]
            if isinstance(entry, Reply) and not entry.is_read and not entry.read_some():
                return False
            self._waiting.pop(0)
            pieces = entry.text.pieces if isinstance(entry, Reply) else pieces_of(entry.message.content)
            found = matches_in(pieces, self.needle)
            self._found[entry] = found
            if self.current is None and found:
                self.current = (entry, found[0])
            elif self.current and self.current[0] is entry and self.current[1] not in found:
                self.current = (entry, found[0]) if found else None
        return not self._waiting

    def matches(self, entry: Entry) -> tuple[Match, ...]:
        """What was found in `entry`."""
        return self._found.get(entry, ())

    @property
    def is_done(self) -> bool:
        """Whether everything was searched."""
        return not self._waiting

    @property
    def all(self) -> list[tuple[Entry, Match]]:
        """Every match so far, as they are read."""
        return [(entry, match) for entry in self._entries for match in self.matches(entry)]

    @property
    def count(self) -> int:
        """How many there are so far."""
        return sum(map(len, self._found.values()))

    @property
    def number(self) -> int:
        """Which of them, from 1, is looked at; 0 for none."""
        return self.all.index(self.current) + 1 if self.current else 0

    def step(self, forward: bool) -> None:
        """The next match, or the one before; round at the ends."""
        found = self.all
        if found:
            number = (self.number or (0 if forward else 1)) - 1
            self.current = found[(number + (1 if forward else -1)) % len(found)]
