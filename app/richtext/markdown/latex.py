"""LaTeX formulas as linear Unicode text, every character with its offset in the source. No Qt.

Not typesetting: fractions become a/b, indices and exponents the small characters Unicode has (else ^(…) and
_(…)). A fraction, root or script gets parentheses where its neighbours would change its meaning: ½·mv² is
(1/2)mv², √2·π is √(2)π, and 2½ is 2 1/2. Nothing is lost: unknown commands stay as they were written, braces
included, and so does a formula that is too deep or too long. Offsets never decrease.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from app.richtext.markdown.latex_symbols import (
    ACCENTS,
    BIG,
    BOLD,
    DOUBLE_STRUCK,
    DROPPED,
    FACES,
    PLAIN,
    SPACES,
    SUB,
    SUPER,
    SYMBOLS,
    WORDS,
)

Glyph = tuple[str, int]  # one visible character and its offset in the source

# space: white space of the source, which LaTeX ignores. gap: a space that separates factors. word: sin, log.
# limit: lim. big: sums and integrals. sign: operators, relations and punctuation.
Role = Literal[
    "atom",
    "number",
    "fraction",
    "word",
    "limit",
    "big",
    "sign",
    "slash",
    "open",
    "close",
    "bar",
    "space",
    "gap",
]
_FACTOR_BEFORE = frozenset(("atom", "number", "fraction", "word", "close", "bar", "slash"))
_FACTOR_BEHIND = frozenset(("atom", "number", "fraction", "word", "limit", "big", "open", "bar", "slash"))
_MATRICES = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "Vmatrix": "‖‖", "Bmatrix": "{}"}
_BARE_MATRICES = ("matrix", "smallmatrix", "array")
_LINES = frozenset(
    ("aligned", "align", "split", "gather", "gathered", "equation", "multline", "eqnarray", "alignat")
)
_FRACTIONS = {"frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"}
_INFIX = ("over", "choose")
_PAIRS = {"(": ")", "[": "]", "{": "}", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉"}
_ROW_GAP = re.compile(r"\*?(?:\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in|mu|bp|pc)\s*\])?")
# No formula that people write comes near these: one that is deeper or longer stays as it was written.
_DEEPEST = 60
_LONGEST = 10_000


class Legible(Struct, frozen=True):
    """A formula as `text`; `places[i]` is the source offset of character i, `bold` are end-exclusive."""

    text: str
    places: tuple[int, ...]
    bold: tuple[tuple[int, int], ...] = ()


def legible(source: str) -> Legible:
    """The formula `source`, without its dollar signs, as text."""
    reader = _Reader(source)
    try:
        read = _joined(reader.formula())
    except _Beyond:
        return Legible(source, tuple(range(len(source))))
    glyphs: list[Glyph] = []
    for glyph, place in _trim(read):
        if glyph == " " and glyphs and glyphs[-1][0].isspace():
            continue
        if glyph in "\n;," and glyphs and glyphs[-1][0] == " ":
            glyphs.pop()
        glyphs.append((glyph, place))
    places = tuple(place for _, place in glyphs)
    bold: list[tuple[int, int]] = []
    for low, high in reader.bold:
        found = [number for number, place in enumerate(places) if low <= place < high]
        if found:
            bold.append((found[0], found[-1] + 1))
    return Legible("".join(glyph for glyph, _ in glyphs), places, tuple(bold))


class _Beyond(Exception):
    """The formula is deeper or longer than what is made legible."""


class _Part(Struct, gc=False):
    """A unit of a formula in one line.

    `tight` is its form beside a factor, with parentheses; `guards` are the sides on which a factor calls for
    it. `scripts` are the marks (^ and _) whose small characters the part ends with.
    """

    role: Role
    glyphs: list[Glyph]
    tight: list[Glyph] | None = None
    guards: Literal["", "left", "right", "both"] = ""
    scripts: str = ""
    whole: bool = False  # a fraction of two whole numbers, which makes a mixed number behind a third


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0
        self.bold: list[tuple[int, int]] = []

    def formula(self) -> list[_Part]:
        """All of it. Raises `_Beyond`."""
        if len(self.source) > _LONGEST:
            raise _Beyond
        return self._sequence("")[0]

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """One level down: every recursive call goes through here."""
        if self.depth == _DEEPEST:
            raise _Beyond
        self.depth += 1
        yield
        self.depth -= 1

    def _sequence(self, *stops: str) -> tuple[list[_Part], str]:
        """Everything up to one of `stops`, which is skipped and returned, or up to the end ("")."""
        parts: list[_Part] = []
        over: tuple[str, list[_Part], int] | None = None
        stopped = ""
        while self.at < len(self.source):
            stop = next((stop for stop in stops if stop and self.source.startswith(stop, self.at)), "")
            if stop:
                self.at += len(stop)
                stopped = stop
                break
            infix = next((name for name in _INFIX if self._is_command(name)), "")
            if infix and over is None:
                over = (infix, parts, self.at)
                self.at += len(infix) + 1
                parts = []
                continue
            self._take(parts)
        if over:
            name, top, place = over
            make = _fraction if name == "over" else _binomial
            parts = [make(_inner(top), _inner(parts), place)]
        return parts, stopped

    def _is_command(self, name: str) -> bool:
        end = self.at + len(name) + 1
        return self.source.startswith("\\" + name, self.at) and not self.source[end : end + 1].isalpha()

    def _take(self, parts: list[_Part]) -> None:
        character, place = self.source[self.at], self.at
        if character in "^_" and self.at + 1 < len(self.source):
            self.at += 1
            with self._deeper():
                self._script(parts, character, place)
        elif character.isspace() or character in "&~":
            self.at += 1
            parts.append(_Part("space", [(" ", place)]))
        elif character in "'!" and (base := _base(parts)):
            self.at += 1
            _attach(base, [("′" if character == "'" else "!", place)])
        elif character.isascii() and character.isdigit():
            end = self.at
            while self.source[end : end + 1].isdigit() or (
                self.source[end : end + 1] == "." and self.source[end + 1 : end + 2].isdigit()
            ):
                end += 1
            self.at = end
            parts.append(_Part("number", [(self.source[i], i) for i in range(place, end)]))
        elif character == "{":
            self._group(parts)
        else:
            self._add(parts, self._atom())

    def _group(self, parts: list[_Part]) -> None:
        """A group in a line: its parts stand there by themselves, unless a script applies to all of them."""
        place = self.at
        self.at += 1
        with self._deeper():
            inner, stop = self._sequence("}")
        if not stop:
            parts += [_Part("open", [("{", place)]), *inner]
            return
        following = self.source[self.at : self.at + 1]
        shown = _inner(inner)
        if not shown and following in ("^", "_"):  # scripts before their base: {}^{14}C
            if _base(parts):
                parts.append(_Part("gap", [(" ", place)]))
            parts.append(_Part("atom", []))
            return
        if len(shown) > 1 and following in ("^", "_", "'"):
            parts.append(_Part("atom", _bracketed(_joined(shown))))
        else:
            self._add(parts, inner)

    def _add(self, parts: list[_Part], more: Sequence[_Part]) -> None:
        for part in more:
            before = parts[-1] if parts else None
            # A whole number directly before a fraction of whole numbers makes a mixed number.
            if part.whole and before and before.role == "number" and not before.scripts:
                mixed = [*before.glyphs, (" ", part.glyphs[0][1]), *part.glyphs]
                if "." not in [glyph for glyph, _ in before.glyphs]:
                    parts[-1] = _Part("fraction", mixed, _bracketed(mixed), "both")
                    continue
            parts.append(part)

    def _argument(self) -> list[_Part]:
        """What a command applies to: one group without its braces, one character, or one command."""
        while self.source[self.at : self.at + 1].isspace():
            self.at += 1
        place = self.at
        if self.source[place : place + 1] != "{":
            return self._atom() if place < len(self.source) else []
        self.at += 1
        with self._deeper():
            inner, stop = self._sequence("}")
        return _inner(inner) if stop else [_Part("open", [("{", place)]), *inner]

    def _atom(self) -> list[_Part]:
        """One character or one command with its arguments."""
        character, place = self.source[self.at], self.at
        if character == "\\":
            with self._deeper():
                return self._command()
        self.at += 1
        return [_Part(_role_of(character), [("−" if character == "-" else character, place)])]

    def _script(self, parts: list[_Part], mark: str, place: int) -> None:
        """An exponent (^) or an index (_) of the part before it."""
        inner = _trim(_joined(self._argument()))
        if mark == "^" and [glyph for glyph, _ in inner] == ["∘"]:
            inner = [("°", inner[0][1])]
        small = SUPER if mark == "^" else SUB
        base = _base(parts)
        if base is None:
            base = _Part("atom", [])
            parts.append(base)
        if inner and all(glyph in small for glyph, _ in inner):
            _attach(base, [(small[glyph], at) for glyph, at in inner], mark)
        elif inner and all(glyph in "′″°†‡" for glyph, _ in inner):
            _attach(base, inner)
        else:
            last = inner[-1][1] if inner else place
            marked = [(mark, place), ("(", place), *inner, (")", last)]
            if len(inner) != 1 or self.source[self.at : self.at + 1] in ("^", "_", "'", "!"):
                _attach(base, marked)
            else:
                _attach(base, [(mark, place), *inner], tight=marked)

    def _command(self) -> list[_Part]:
        place = self.at
        end = place + 1
        while end < len(self.source) and self.source[end].isascii() and self.source[end].isalpha():
            end += 1
        if end == place + 1:
            return self._mark(place)
        name = self.source[place + 1 : end]
        self.at = end
        if name in ("operatorname", "DeclareMathOperator"):
            self.at += self.source[self.at : self.at + 1] == "*"
            return [_Part("word", _joined(self._argument()))]
        if name in WORDS:
            return [_Part("limit" if name.startswith("lim") else "word", _spread(WORDS[name], place))]
        if name in BIG:
            return [_Part("big", _spread(BIG[name], place))]
        if name in SYMBOLS:
            return [_Part(_role_of(SYMBOLS[name][0]), _spread(SYMBOLS[name], place))]
        if name in PLAIN:
            begin = self.at
            inner = self._words() if PLAIN[name] else self._argument()
            if name in BOLD:
                self.bold.append((begin, self.at))
            if PLAIN[name]:
                return inner
            joined = _joined(inner)
            lone_word = name == "mathrm" and len(joined) > 1 and all(glyph.isalnum() for glyph, _ in joined)
            return [_Part("atom", joined)] if lone_word else inner
        if name in FACES:
            face = FACES[name]
            return [
                _Part(part.role, [(face.get(glyph, glyph), at) for glyph, at in part.glyphs])
                for part in self._argument()
            ]
        if name == "mathbb":
            return [
                _Part(part.role, [(DOUBLE_STRUCK.get(glyph, glyph), at) for glyph, at in part.glyphs])
                for part in self._argument()
            ]
        if name in _FRACTIONS:
            top = self._argument()
            slash = max(self.at - 1, place)
            return [_fraction(top, self._argument(), slash, place)]
        if name in ("binom", "dbinom", "tbinom"):
            top = self._argument()
            middle = max(self.at - 1, place)
            return [_binomial(top, self._argument(), middle, place)]
        if name == "sqrt":
            return [self._root(place)]
        if name in ACCENTS:
            return _accented(name, _joined(self._argument()), place)
        if name in ("underbrace", "overbrace"):
            braced = _bracketed(_joined(self._argument()))
            return [_Part("word", [*_spread(name, place), *braced])]
        if name == "boxed":
            inner_parts = self._argument()
            one = len(inner_parts) == 1 or not self.source[self.at :].strip(" .,;")
            return inner_parts if one else [_Part("atom", _bracketed(_joined(inner_parts)))]
        if name in ("xrightarrow", "xleftarrow"):
            arrow = _Part("sign", [("→" if name == "xrightarrow" else "←", place)])
            _attach(arrow, [("^", place), *_bracketed(_joined(self._argument()))])
            return [arrow]
        if name == "pmod":
            modulus = _joined(self._argument())
            words = [*_spread("(mod ", place), *modulus, (")", modulus[-1][1] if modulus else place)]
            return [_Part("gap", [(" ", place)]), _Part("atom", words)]
        if name == "tag":
            gap = [_Part("gap", [(" ", place)])]
            return [*gap, _Part("gap", _bracketed([g for part in self._words() for g in part.glyphs]))]
        if name in ("left", "right", "middle"):
            return self._delimiter(name, place)
        if name == "not":
            negated = _joined(self._argument())
            return [_Part("sign", [*negated, ("\u0338", max(self.at - 1, place))])]
        if name in DROPPED:
            return []
        if name in SPACES:
            return [_Part("gap" if "quad" in name else "space", [(" ", place)])]
        if name == "begin":
            return self._environment(place)
        if name == "end":
            end = self.source.find("}", self.at)
            self.at = end + 1 if self.source[self.at : self.at + 1] == "{" and end >= 0 else self.at
            return [_Part("gap", [(self.source[i], i) for i in range(place, self.at)])]
        return self._unknown(place)

    def _delimiter(self, name: str, place: int) -> list[_Part]:
        while self.source[self.at : self.at + 1].isspace():
            self.at += 1
        if self.source[self.at : self.at + 1] == ".":
            self.at += 1
            return []
        if name == "middle" or self.at >= len(self.source):
            return []
        parts = self._atom()
        for part in parts:
            part.role = "open" if name == "left" else "close"
        return parts

    def _mark(self, place: int) -> list[_Part]:
        """A backslash and one character that is no letter."""
        following = self.source[place + 1 : place + 2]
        self.at = place + 1 + len(following)
        if following == "\\":
            self._skip_row_gap()
            return [_Part("gap", [("\n", place)])]
        if following in ",;:> \n":
            return [_Part("space", [(" ", place)])] if following else [_Part("atom", [("\\", place)])]
        if following == "!":
            return []
        if following == "|":
            return [_Part("bar", [("‖", place)])]
        if following in "{}%$#_&":
            return [_Part(_role_of(following), [(following, place + 1)])]
        return [_Part("atom", [("\\", place), (following, place + 1)])]

    def _skip_row_gap(self) -> None:
        """Skips the length behind a line break: \\\\[4pt]."""
        match = _ROW_GAP.match(self.source, self.at)
        self.at = match.end() if match else self.at

    def _root(self, place: int) -> _Part:
        index: list[Glyph] = []
        if self.source[self.at : self.at + 1] == "[":
            self.at += 1
            with self._deeper():
                index = _trim(_joined(self._sequence("]")[0]))
        sign = max(self.at - 1, place)
        inner = self._argument()
        glyphs = _joined(inner)
        bracketed = _bracketed(glyphs, sign)
        lone = len(inner) == 1 and inner[0].role in ("atom", "number") and not inner[0].guards
        lone = lone and (len(glyphs) == 1 or inner[0].role == "number") and not inner[0].scripts
        if not index:
            bare = [("√", sign), *(glyphs if lone else bracketed)]
            return _Part("atom", bare, [("√", sign), *bracketed], "right")
        if all(glyph in SUPER for glyph, _ in index):
            head = [*((SUPER[glyph], at) for glyph, at in index), ("√", sign)]
            bare = [*head, *(glyphs if lone else bracketed)]
            return _Part("atom", bare, _bracketed(bare), "both")
        head = [("√", place), ("[", place), *index, ("]", sign)]
        return _Part("atom", [*head, *bracketed])

    def _environment(self, place: int) -> list[_Part]:
        end = self.source.find("}", self.at)
        if self.source[self.at : self.at + 1] != "{" or end < 0:
            return self._unknown(place)
        written = self.source[self.at + 1 : end]
        kind = written.rstrip("*")
        closing = f"\\end{{{written}}}"
        known = kind in _MATRICES or kind in _BARE_MATRICES or kind in _LINES or kind in ("cases", "dcases")
        if not known or self.source.find(closing, end) < 0:
            self.at = end + 1
            return [_Part("atom", [(self.source[i], i) for i in range(place, self.at)])]
        self.at = end + 1
        if kind in ("array", "alignat") and self.source[self.at : self.at + 1] == "{":
            self.at = max(self.at, self.source.find("}", self.at) + 1)
        rows = self._rows(closing)
        close = self.at - 1
        if kind in _LINES:
            return _as_lines(rows)
        glyphs = _as_matrix(rows)
        if kind in ("cases", "dcases"):
            ends = not self.source[self.at :].strip(" .,;\\}&\n") or self.source.startswith("\\\\", self.at)
            shown = [("{", place), (" ", place), *glyphs, *([] if ends else [(" ", close), ("}", close)])]
            return [_Part("atom", shown)]
        if kind in _BARE_MATRICES and self._is_delimited(place):
            return [_Part("gap", glyphs)]
        pair = _MATRICES.get(kind, "[]")
        return [_Part("atom", [(pair[0], place), *glyphs, (pair[1], close)])]

    def _is_delimited(self, place: int) -> bool:
        """Whether a matrix that begins at `place` stands directly between its own delimiters."""
        return self.source[:place].rstrip()[-1:] in ("(", "[", "{", "|", ".") and (
            self.source[self.at :].lstrip()[:1] in (")", "]", "}", "|", "\\")
        )

    def _rows(self, closing: str) -> list[list[list[_Part]]]:
        """The rows of an environment up to its end; each is a list of cells."""
        rows: list[list[list[_Part]]] = [[]]
        with self._deeper():
            while True:
                cell, stop = self._sequence(closing, "&", "\\\\")
                rows[-1].append(_inner(cell))
                if stop == "\\\\":
                    self._skip_row_gap()
                    rows.append([])
                elif stop != "&":
                    break
        return [row for row in rows if any(row)]

    def _words(self) -> list[_Part]:
        """The words of \\text{…} with their spaces."""
        if self.source[self.at : self.at + 1] != "{":
            return self._argument()
        depth, end = 0, self.at
        for end in range(self.at, len(self.source)):
            depth += {"{": 1, "}": -1}.get(self.source[end], 0)
            if not depth:
                break
        start, self.at = self.at + 1, end + 1
        stop = len(self.source) if depth else end  # an unclosed group reaches to the end
        glyphs = [(self.source[i], i) for i in range(start, stop) if depth or self.source[i] != "$"]
        words = _trim(glyphs)
        if not words:
            return [_Part("gap", glyphs)]
        first = glyphs.index(words[0])
        before, behind = glyphs[:first], glyphs[first + len(words) :]
        inner = _Part("atom", words) if not any(g.isspace() for g, _ in words) else _Part("gap", words)
        return [
            *([_Part("gap", before)] if before else []),
            inner,
            *([_Part("gap", behind)] if behind else []),
        ]

    def _unknown(self, place: int) -> list[_Part]:
        """An unknown command with the groups behind it, as written."""
        while self.source[self.at : self.at + 1] == "{":
            self.at += 1
            with self._deeper():
                self._sequence("}")
        return [_Part("atom", [(self.source[i], i) for i in range(place, self.at)])]


def _role_of(character: str) -> Role:
    if character in "([{⟨⌊⌈":
        return "open"
    if character in ")]}⟩⌋⌉":
        return "close"
    if character in "|‖":
        return "bar"
    if character == "/":
        return "slash"
    if character.isalpha() or character in '∞∅°…⋯∂∇∆\\%#$?@"':
        return "atom"
    return "number" if character.isdigit() else "sign"


def _base(parts: list[_Part]) -> _Part | None:
    """The part that a script behind `parts` belongs to, without the spaces in between."""
    number = len(parts) - 1
    while number >= 0 and parts[number].role == "space":
        number -= 1
    if number < 0 or parts[number].role in ("gap", "sign", "slash", "open"):
        return None
    del parts[number + 1 :]
    return parts[number]


def _attach(base: _Part, script: list[Glyph], mark: str = "", tight: list[Glyph] | None = None) -> None:
    """Puts `script` behind `base`, in parentheses if it would otherwise apply to a part of it."""
    glyphs = base.tight or base.glyphs
    if base.tight and base.guards == "right" and base.glyphs[0][0] == "√":
        glyphs = _bracketed(base.glyphs)
    elif mark and mark in base.scripts:
        glyphs = _bracketed(glyphs)
        base.scripts = ""
    if base.role == "fraction":
        base.role = "atom"
    base.whole = False
    base.glyphs = [*glyphs, *script]
    base.tight = [*glyphs, *tight] if tight else None
    base.guards = "right" if tight else ""
    base.scripts += mark


def _fraction(top: list[_Part], bottom: list[_Part], slash: int, place: int | None = None) -> _Part:
    first, last = _differentials(top), _differentials(bottom)
    if first and last and first[0][0] == last[0][0]:
        glyphs = [*first, ("/", slash), *last]
        return _Part("fraction", glyphs, _bracketed(glyphs), "both")
    above = _joined(top) if _is_product(top) else _bracketed(_joined(top), slash if place is None else place)
    below = _joined(bottom) if _is_single(bottom) else _bracketed(_joined(bottom), slash)
    glyphs = [*above, ("/", slash), *below]
    whole = all(
        len(parts) == 1 and all(glyph.isascii() and glyph.isdigit() for glyph, _ in parts[0].glyphs)
        for parts in (top, bottom)
    )
    return _Part("fraction", glyphs, _bracketed(glyphs), "both", whole=whole)


def _differentials(parts: list[_Part]) -> list[Glyph]:
    """The glyphs of dx, ∂x∂y or d²y without spaces; empty for anything else."""
    solid = [part for part in parts if part.role != "space"]
    if not solid or any(part.role != "atom" or part.guards for part in solid):
        return []
    if any(part.glyphs[0][0] not in "d∂" for part in solid[::2]) or len(solid) > 6:
        return []
    return [glyph for part in solid for glyph in part.glyphs]


def _binomial(top: list[_Part], bottom: list[_Part], middle: int, place: int | None = None) -> _Part:
    above, below = _joined(top), _joined(bottom)
    first = above[0][1] if place is None and above else (middle if place is None else place)
    last = below[-1][1] if below else middle
    return _Part("atom", [("(", first), *above, *_spread(" choose ", middle), *below, (")", last)])


def _is_single(parts: list[_Part]) -> bool:
    """Whether `parts` can stand behind a slash without parentheses."""
    if len(parts) > 1 and parts[0].role == "open" and parts[-1].role == "close":
        depth = 0
        for number, part in enumerate(parts):
            depth += {"open": 1, "close": -1}.get(part.role, 0)
            if depth == 0:
                return number == len(parts) - 1 and parts[0].glyphs[0][0] == "("
    return len(parts) == 1 and parts[0].role in ("atom", "number") and parts[0].guards in ("", "right")


def _is_product(parts: list[_Part]) -> bool:
    """Whether `parts` can stand before a slash without parentheses."""
    if _is_single(parts):
        return True
    simple = all(part.role in ("atom", "number") and not part.guards for part in parts)
    return simple and all(glyph.isalnum() for part in parts for glyph, _ in part.glyphs) and bool(parts)


def _joined(parts: Sequence[_Part]) -> list[Glyph]:
    """`parts` in one line, each in the form that its neighbours call for."""
    shown: list[Glyph] = []
    solid = [number for number, part in enumerate(parts) if part.role != "space"]
    before = dict(zip(solid[1:], solid))
    behind = dict(pairwise(solid))
    for number, part in enumerate(parts):
        glyphs = part.glyphs
        if part.guards:
            left = part.guards in ("left", "both") and number in before
            right = part.guards in ("right", "both") and number in behind
            if (left and parts[before[number]].role in _FACTOR_BEFORE) or (
                right and parts[behind[number]].role in _FACTOR_BEHIND
            ):
                glyphs = part.tight or glyphs
        if not glyphs:
            continue
        previous = parts[before[number]] if number in before else None
        if previous and shown and shown[-1][0].isalnum() and glyphs[0][0].isalnum():
            if {"word", "limit"} & {part.role, previous.role}:
                shown.append((" ", glyphs[0][1]))
        elif previous and previous.role in ("limit", "big") and shown and shown[-1][0] == ")":
            shown.append((" ", glyphs[0][1]))
        if part.role == "space" and (not shown or shown[-1][0].isspace()):
            continue
        shown += glyphs
    return shown


def _as_lines(rows: list[list[list[_Part]]]) -> list[_Part]:
    """The rows of an aligned environment, a line each."""
    parts: list[_Part] = []
    for row in rows:
        if parts:
            first = next((glyph for cell in row for part in cell for glyph in part.glyphs), ("", 0))
            parts.append(_Part("gap", [("\n", first[1])]))
        for number, cell in enumerate(row):
            if number and cell and parts and parts[-1].glyphs:
                parts.append(_Part("space", [(" ", cell[0].glyphs[0][1] if cell[0].glyphs else 0)]))
            parts += cell
    return parts


def _as_matrix(rows: list[list[list[_Part]]]) -> list[Glyph]:
    """Cells with commas between them, rows with semicolons; a cell that has either is in parentheses."""
    shown: list[Glyph] = []
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            glyphs = _trim(_joined(cell))
            cell = [part for part in cell if part.glyphs]
            if glyphs and glyphs[-1][0] in ",;" and cell[-1].glyphs[-1] == glyphs[-1]:
                cell = cell[:-1]  # written where the separator will be
                if column + 1 < len(row) or number + 1 < len(rows):
                    glyphs.pop()
            if _has_separator(cell):
                glyphs = _bracketed(glyphs)
            if number or column:
                place = glyphs[0][1] if glyphs else shown[-1][1] if shown else 0
                shown += [("," if column else ";", place), (" ", place)]
            shown += glyphs
    return shown


def _has_separator(cell: Sequence[_Part]) -> bool:
    """Whether a comma, a semicolon or a line break stands outside of brackets."""
    depth = 0
    for part in cell:
        depth += {"open": 1, "close": -1}.get(part.role, 0)
        if depth <= 0 and part.glyphs[0][0] in ",;\n":
            return True
    return False


def _bracketed(inner: Sequence[Glyph], place: int | None = None) -> list[Glyph]:
    """`inner` in parentheses. `place` is the offset of the opening one if nothing is inside."""
    inner = _trim(inner)
    if not inner:
        return [("(", place), (")", place)] if place is not None else []
    return [("(", inner[0][1]), *inner, (")", inner[-1][1])]


def _accented(name: str, inner: list[Glyph], place: int) -> list[_Part]:
    # Marks of marks double the text with each level.
    if len(inner) > _LONGEST:
        raise _Beyond
    mark = ACCENTS[name]
    if len(inner) == 1 or name in ("overline", "underline"):
        return [_Part("atom", [part for glyph, at in inner for part in ((glyph, at), (mark, at))])]
    return [_Part("word", [*_spread(name, place), *_bracketed(inner, place)])]


def _inner(parts: list[_Part]) -> list[_Part]:
    """`parts` without the spaces around them."""
    first, last = 0, len(parts)
    while first < last and parts[first].role == "space":
        first += 1
    while last > first and parts[last - 1].role == "space":
        last -= 1
    return parts[first:last]


def _spread(text: str, place: int) -> list[Glyph]:
    return [(glyph, place) for glyph in text]


def _trim(glyphs: Sequence[Glyph]) -> list[Glyph]:
    first, last = 0, len(glyphs)
    while first < last and glyphs[first][0].isspace():
        first += 1
    while last > first and glyphs[last - 1][0].isspace():
        last -= 1
    return list(glyphs[first:last])
