"""Facts of an answer, and where each stands."""

from __future__ import annotations

from collections.abc import Sequence

from core.origins.index import Index
from core.origins.parts import Part
from core.origins.types import Fact, FactState, Origins, Place
from core.origins.words import words


class FactFinder:
    """Finds the facts of an answer, part by part."""

    def __init__(
        self,
        indexes: Sequence[Index],
        question: str,
        earlier: Sequence[Origins],
        read: Sequence[Sequence[tuple[int, int]] | None],
    ) -> None:
        self._indexes = indexes
        self._asked = {word.key for word in words(question)}
        self._earlier = {fact.key: fact for origins in earlier for fact in origins.facts}
        self._read = read

    def add(self, part: Part) -> list[Fact]:
        """Facts of the next part."""
        found = []
        for word in words(part.text):
            if word.key[0].isdigit():
                place = self._place(word.key)
                state: FactState = "document" if place else "nowhere"
                if place is None and word.key in self._asked:
                    state = "question"
                start, end = part.start + word.start, part.start + word.end
                found.append(Fact(start, end, "number", state, place, word.key))
        return found

    def _place(self, key: str) -> Place | None:
        for source, index in enumerate(self._indexes):
            if index.count(key):
                at = index.where[index.ids[key]][0]
                return Place(source, *index.characters(at, at))
        return None

    def save(self) -> int:
        """The state between two parts."""
        return 0

    def restore(self, saved: int) -> None:
        """Forget everything after `saved`."""
