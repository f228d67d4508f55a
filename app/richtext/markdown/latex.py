"""LaTeX made legible: a formula as Unicode text, every character with its place in the source. No Qt.

Not typesetting: fractions become a/b, indices and exponents the small characters Unicode has (else
^(…) and _(…)), symbols themselves. Nothing is lost: what is not known stands as it was written,
braces and all, and so does a whole formula that is too deep or too long. Places never go backwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.richtext.markdown.latex_symbols import (
    ACCENTS,
    DOUBLE_STRUCK,
    DROPPED,
    PLAIN,
    SPACES,
    SUB,
    SUPER,
    SYMBOLS,
)

Glyph = tuple[str, int]  # one visible character and its offset in the source

_MATRICES = {"matrix": "  ", "pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "Bmatrix": "{}"}
_FRACTIONS = {"frac", "dfrac", "tfrac", "cfrac"}
# No formula that people write comes near these: one that is deeper or longer stands as it was written.
_DEEPEST = 60
_LONGEST = 10_000


def legible(source: str) -> tuple[str, tuple[int, ...]]:
    """The formula `source` (without its dollar signs) as text, and each character's offset."""
    try:
        read = _Reader(source).formula()
    except _Beyond:
        return source, tuple(range(len(source)))
    glyphs: list[Glyph] = []
    for glyph, place in _trim(read):
        if glyph == " " and glyphs and glyphs[-1][0].isspace():
            continue
        if glyph in "\n;" and glyphs and glyphs[-1][0] == " ":
            glyphs.pop()
        glyphs.append((glyph, place))
    return "".join(glyph for glyph, _ in glyphs), tuple(place for _, place in glyphs)


class _Beyond(Exception):
    """The formula is deeper or longer than what is made legible."""


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0
        self.matrix = 0

    def formula(self) -> list[Glyph]:
        """All of it. Raises `_Beyond`."""
        if len(self.source) > _LONGEST:
            raise _Beyond
        return self._sequence("")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """One level down: whatever calls itself again goes through here."""
        if self.depth == _DEEPEST:
            raise _Beyond
        self.depth += 1
        yield
        self.depth -= 1

    def _group(self, stop: str) -> list[Glyph]:
        """Everything up to `stop`, one level down."""
        with self._deeper():
            return self._sequence(stop)

    def _sequence(self, stop: str) -> list[Glyph]:
        """Everything up to `stop` (which is stepped over) or the end."""
        shown: list[Glyph] = []
        while self.at < len(self.source):
            if stop and self.source.startswith(stop, self.at):
                self.at += len(stop)
                return shown
            self._take(shown)
        return shown

    def _take(self, shown: list[Glyph]) -> None:
        character, place = self.source[self.at], self.at
        if character in "^_" and self.at + 1 < len(self.source):
            self.at += 1
            shown += _raised(character, self._atom(), place)
        elif character.isspace() or character == "&":
            self.at += 1
            _space(shown, place)
        elif character == "~":
            self.at += 1
            shown.append((" ", place))
        elif character == "'":
            self.at += 1
            shown.append(("′", place))
        else:
            shown += self._atom()

    def _atom(self) -> list[Glyph]:
        """One character, one group without its braces, or one command with what it takes."""
        while self.at < len(self.source) and self.source[self.at].isspace():
            self.at += 1
        if self.at >= len(self.source):
            return []
        character, place = self.source[self.at], self.at
        if character == "{":
            self.at += 1
            inner = self._group("}")
            closed = self.source[self.at - 1] == "}" and self.at - 1 > place
            return inner if closed else [("{", place), *inner]
        if character == "\\":
            with self._deeper():
                return self._command()
        self.at += 1
        return [("−" if character == "-" else character, place)]

    def _command(self) -> list[Glyph]:
        place = self.at
        end = place + 1
        while end < len(self.source) and self.source[end].isascii() and self.source[end].isalpha():
            end += 1
        if end == place + 1:
            return self._mark(place)
        name = self.source[place + 1 : end]
        self.at = end
        if name in SYMBOLS:
            return _spread(SYMBOLS[name], place)
        if name in PLAIN:
            return self._group_as_written() if PLAIN[name] else self._atom()
        if name in _FRACTIONS:
            top = _wrapped(self._atom(), place)
            slash = max(self.at - 1, place)
            return [*top, ("/", slash), *_wrapped(self._atom(), slash)]
        if name in ("binom", "dbinom", "tbinom"):
            top = self._atom()
            middle = max(self.at - 1, place)
            return [("(", place), *top, *_spread(" choose ", middle), *self._atom(), (")", self.at - 1)]
        if name == "sqrt":
            return self._root(place)
        if name in ACCENTS:
            return _accented(name, self._atom(), place)
        if name == "mathbb":
            return [(DOUBLE_STRUCK.get(glyph, glyph), at) for glyph, at in self._atom()]
        if name in ("left", "right"):
            if self.source[self.at : self.at + 1] == ".":
                self.at += 1
            return []
        if name == "not":
            return [*self._atom(), ("\u0338", self.at - 1)]
        if name in DROPPED:
            return []
        if name in SPACES:
            return [(" ", place)]
        if name in ("begin", "end"):
            return self._environment(name, place)
        return self._unknown(place)

    def _mark(self, place: int) -> list[Glyph]:
        """A backslash and one character that is no letter."""
        following = self.source[place + 1 : place + 2]
        self.at = place + 1 + len(following)
        if following == "\\":
            return [(";" if self.matrix else "\n", place), *([(" ", place)] if self.matrix else [])]
        if following in ",;:> \n":
            return [(" ", place)] if following else [("\\", place)]
        if following == "!":
            return []
        if following == "|":
            return [("‖", place)]
        if following in "{}%$#_&":
            return [(following, place + 1)]
        return [("\\", place), (following, place + 1)]

    def _root(self, place: int) -> list[Glyph]:
        index: list[Glyph] = []
        if self.source[self.at : self.at + 1] == "[":
            self.at += 1
            index = self._group("]")
        sign = max(self.at - 1, place)
        small = [(SUPER.get(glyph, glyph), at) for glyph, at in index]
        return [*small, ("√", sign), *_wrapped(self._atom(), sign)]

    def _environment(self, name: str, place: int) -> list[Glyph]:
        end = self.source.find("}", self.at)
        if self.source[self.at : self.at + 1] != "{" or end < 0:
            return self._unknown(place)
        kind = self.source[self.at + 1 : end].rstrip("*")
        self.at = end + 1
        pair = _MATRICES.get(kind)
        if pair:
            self.matrix += 1 if name == "begin" else -1
            return [(pair[0 if name == "begin" else 1], place)] if pair.strip() else []
        if kind == "cases" and name == "begin":
            return [("{", place), (" ", place)]
        if kind == "array" and name == "begin" and self.source[self.at : self.at + 1] == "{":
            self.at = max(self.at, self.source.find("}", self.at) + 1)
        return []

    def _group_as_written(self) -> list[Glyph]:
        """The words of \\text{…}, spaces and all."""
        if self.source[self.at : self.at + 1] != "{":
            return self._atom()
        depth, end = 0, self.at
        for end in range(self.at, len(self.source)):
            depth += {"{": 1, "}": -1}.get(self.source[end], 0)
            if not depth:
                break
        start, self.at = self.at + 1, end + 1
        if depth:  # never closed
            return [(self.source[i], i) for i in range(start, len(self.source))]
        return [(self.source[i], i) for i in range(start, end) if self.source[i] != "$"]

    def _unknown(self, place: int) -> list[Glyph]:
        """A command nobody here knows, with the groups behind it, as written."""
        while self.source[self.at : self.at + 1] == "{":
            self.at += 1
            self._group("}")
        return [(self.source[i], i) for i in range(place, self.at)]


def _raised(mark: str, inner: list[Glyph], place: int) -> list[Glyph]:
    """An exponent (^) or an index (_)."""
    small = SUPER if mark == "^" else SUB
    inner = _trim(inner)
    if inner and all(glyph in small for glyph, _ in inner):
        return [(small[glyph], at) for glyph, at in inner]
    if len(inner) == 1 and inner[0][0] in "′″∗":
        return inner
    if len(inner) == 1:
        return [(mark, place), *inner]
    return [(mark, place), ("(", place), *inner, (")", inner[-1][1] if inner else place)]


def _wrapped(inner: Sequence[Glyph], place: int) -> list[Glyph]:
    """In parentheses if it is more than one thing."""
    inner = _trim(list(inner))
    text = "".join(glyph for glyph, _ in inner)
    if len(text) <= 1 or text.isalnum() or (text[0], text[-1]) == ("(", ")"):
        return inner
    return [("(", max(place, inner[0][1] - 1)), *inner, (")", inner[-1][1])]


def _accented(name: str, inner: list[Glyph], place: int) -> list[Glyph]:
    # Marks of marks double the text with each level.
    if len(inner) > _LONGEST:
        raise _Beyond
    mark = ACCENTS[name]
    visible = [glyph for glyph, _ in inner]
    if len(visible) == 1 or name in ("overline", "underline"):
        return [part for glyph, at in inner for part in ((glyph, at), (mark, at))]
    return [*_spread(name, place), *([("(", place), *inner, (")", inner[-1][1])] if inner else [])]


def _spread(text: str, place: int) -> list[Glyph]:
    return [(glyph, place) for glyph in text]


def _space(shown: list[Glyph], place: int) -> None:
    if shown and not shown[-1][0].isspace():
        shown.append((" ", place))


def _trim(glyphs: list[Glyph]) -> list[Glyph]:
    first, last = 0, len(glyphs)
    while first < last and glyphs[first][0].isspace():
        first += 1
    while last > first and glyphs[last - 1][0].isspace():
        last -= 1
    return glyphs[first:last]
