"""Highlight: token classes of program text from Pygments, lexed in slices. No Qt.

Slices keep the window responsive for long programs. Growing text is lexed again from its beginning once it
has become considerably longer: later text may change the class of a word, and the work stays proportional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from app.richtext.markdown.piece import report

if TYPE_CHECKING:
    from pygments.lexer import Lexer

WordKind = Literal["keyword", "string", "number", "comment", "name"]

_GROWN_BY = 1.25
_GROWN_CHARACTERS = 80
_TOKENS_A_LOOK = 40
# A lexer is a set of regular expressions: with a line or a text without end one match may take minutes.
_LONGEST = 100_000
_LONGEST_LINE = 2_000


class HighlightedStretch(Struct, frozen=True, gc=False):
    """The characters [start, end) of the program are of one kind."""

    start: int
    end: int
    kind: WordKind


class Highlight:
    """`stretches` of the text last lexed; `set_text`, then `advance` until it says True."""

    def __init__(self, language: str) -> None:
        self._lexer = lexer_for(language)
        self._words: Iterator[tuple[int, object, str]] | None = None
        self._length = -1
        self._fresh: list[HighlightedStretch] = []
        self.stretches: list[HighlightedStretch] = []

    def set_text(self, text: str, whole: bool) -> None:
        """The program is `text` now; `whole` says that it will not grow."""
        grown = len(text) - self._length
        enough = grown >= max(_GROWN_CHARACTERS, self._length * (_GROWN_BY - 1))
        if self._lexer is None or not (enough or (whole and grown)):
            return
        self._length = len(text)
        if len(text) > _LONGEST or max(map(len, text.split("\n"))) > _LONGEST_LINE:
            self._lexer, self._words, self.stretches = None, None, []
            return
        # Not `get_tokens`: that takes white space off the ends, and places would be off.
        self._words = iter(self._lexer.get_tokens_unprocessed(text))
        self._fresh = []

    def advance(self, time_is_up: Callable[[], bool]) -> bool:
        """Go on until done or `time_is_up()`; whether there is nothing left to do."""
        while self._words is not None:
            try:
                part = list(islice(self._words, _TOKENS_A_LOOK))
            except Exception as error:  # a lexer is any program's grammar, met by any text
                report("The colours of code", error)
                self._lexer, self._fresh, part = None, [], []
            if not part:
                self.stretches, self._words = self._fresh, None
                return True
            for start, kind, word in part:
                meant = _kind_of(kind)
                if meant and word.strip():
                    self._fresh.append(HighlightedStretch(start, start + len(word), meant))
            if time_is_up():
                return False
        return True


@lru_cache(64)
def lexer_for(language: str) -> Lexer | None:
    """The lexer of that language by any of its names; None if there is none."""
    from pygments.lexers import get_lexer_by_name  # only when code is shown
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language) if language else None
    except ClassNotFound:
        return None


def _kind_of(token: object) -> WordKind | None:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    if token in Comment:
        return "comment"
    if token in Keyword or token is Operator.Word or token in Name.Decorator or token in Name.Tag:
        return "keyword"
    if token in String:
        return "string"
    if token in Number:
        return "number"
    if token in Name.Function or token in Name.Class or token in Name.Attribute:
        return "name"
    return None
