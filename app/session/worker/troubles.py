"""Troubles: all that is wrong at once, and which of it the banner shows. Pure.

The newest comes first and is shown first; what it covers is counted and can be reached. Nothing
leaves before its time: `after` says what has ended it, or a person dismisses it.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from app.session.worker.trouble import Trouble, Until


class Troubles(Struct, frozen=True):
    """`at` is the number of the one that is shown, from 0."""

    held: tuple[Trouble, ...] = ()
    at: int = 0

    @property
    def shown(self) -> Trouble | None:
        """The one in front; None if all is well."""
        return self.held[self.at] if self.held else None

    def with_new(self, trouble: Trouble) -> Troubles:
        """`trouble` in front. What is held already is not held twice, and stays where it is."""
        return self if trouble in self.held else Troubles((trouble, *self.held))

    def without(self, trouble: Trouble | None) -> Troubles:
        """It is over, or known. The one that comes next is shown in its place."""
        if trouble is None or trouble not in self.held:
            return self
        number = self.held.index(trouble)
        held = tuple(each for each in self.held if each != trouble)
        at = self.at - 1 if number < self.at else self.at
        return Troubles(held, min(at, max(0, len(held) - 1)))

    def after(self, happened: Until) -> Troubles:
        """What lasts longer than until this happened."""
        left = self
        for trouble in self.held:
            if trouble.until <= happened:
                left = left.without(trouble)
        return left

    def next(self) -> Troubles:
        """The one behind the one that is shown; behind the last, the first."""
        return replace(self, at=(self.at + 1) % len(self.held)) if self.held else self
