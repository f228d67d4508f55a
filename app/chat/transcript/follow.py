"""Follow: whether the transcript keeps to its end. Pure: scroll positions in, a decision out.

It follows until the reader scrolls away from the end, and again once the reader is back there.
A change of the content's height is not the reader's doing and decides nothing.
"""

from __future__ import annotations


class Follow:
    """`following` is what counts."""

    def __init__(self) -> None:
        self.following = True

    def scrolled(self, value: int, maximum: int) -> bool:
        """The reader scrolled to `value` of `maximum`. Whether `following` changed."""
        before = self.following
        self.following = value >= maximum
        return self.following != before

    def follow(self) -> bool:
        """Go back to the end. Whether `following` changed."""
        before, self.following = self.following, True
        return not before
