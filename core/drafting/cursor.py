"""Cursor: the offset in a text from which an answer is being copied, followed across changed words.

A match of the answer's last tokens ends at the first token that differs from its source and needs several
tokens to become long again, while an edited copy usually continues right after the change. So after a token
that differs, the cursor assumes a replacement and advances by one. If the token is one of the text's next
three, it assumes omitted words. After more than `_MAX_DIFFERENCES` differences without two consecutive
matching tokens it is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.drafting.suffix_index import ABSENT

_MAX_DIFFERENCES = 8
_LOOK_AHEAD = 3


class Cursor:
    """An offset into `text`, which may grow; `at` is the offset, or `ABSENT`.

    `run` counts consecutive matching tokens. `trust` is the same, but a difference only halves it: the longer
    the run, the more probable that the copy continues after a change (1 to 3% in copies with one word in
    fifty changed).

    `follows`: the answer is expected to follow the text. Then a token that differs may also be one of the
    three expected when the difference began, after inserted words; a token found nearby begins a run; and
    only a longer match elsewhere moves the cursor.
    """

    def __init__(self, text: Sequence[int], *, follows: bool = False) -> None:
        self._text = text
        self._follows = follows
        # Matching tokens that move the cursor where it has no run, and where it has one. Edited copies of
        # recorded answers and of code: 3 and 8 instead of 5 and 12 cost up to a quarter of the speed.
        self._min_match, self._switch_match = (5, 12) if follows else (2, 4)
        self.move(ABSENT, 0)

    def move(self, at: int, matched: int) -> None:
        """Continues at `at`, before which `matched` tokens equal the answer's last ones."""
        self.at = self._undisturbed = at
        self.run = self.trust = matched
        self._differences = 0

    def relocate(self, at: int, matched: int) -> bool:
        """Moves to `at`, before which `matched` tokens equal the answer's last ones, if that match is better.

        Returns whether it moved.
        """
        if matched < (max(self._switch_match, self.run + 3) if self.run else self._min_match):
            return False
        self.move(at, matched)
        return True

    def follow(self, token: int) -> int:
        """Advances by the answer's next `token`. Returns its offset in the text; `ABSENT` if it differs."""
        text, at = self._text, self.at
        if not 0 <= at < len(text):
            self.move(ABSENT, 0)
            return ABSENT
        if text[at] == token:
            self.at += 1
            self.run += 1
            self.trust += 1
            if self.run > 1:
                self._differences, self._undisturbed = 0, self.at
            return at
        self.run = 0
        self.trust //= 2
        self._differences += 1
        if self._differences > _MAX_DIFFERENCES:
            self.move(ABSENT, 0)
            return ABSENT
        for start in (at + 1, self._undisturbed) if self._follows else (at + 1,):
            near = text[start : start + _LOOK_AHEAD]
            if token in near:
                found = start + near.index(token)
                self.at, self.run = found + 1, int(self._follows)
                return found
        self.at += 1
        return ABSENT
