"""LaTeX formulas as linear Unicode text, every character with its offset in the source. No Qt.

Not typesetting: fractions become a/b, indices and exponents the small characters Unicode has (else ^(…) and
_(…)). Nothing is lost: unknown commands stay as they were written, braces included, and so do formulas that
are too deep or too long. Offsets never decrease.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from app.richtext.markdown.latex_parts import (
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
    Glyph,
    Part,
    as_lines,
    as_matrix,
    attach,
    binomial,
    bracketed,
    fraction,
    joined,
    role_of,
    script_base,
    spread,
    stripped,
    trim,
)

_MATRICES = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "Vmatrix": "‖‖", "Bmatrix": "{}"}
_BARE_MATRICES = ("matrix", "smallmatrix", "array")
_LINES = frozenset(
    ("aligned", "align", "split", "gather", "gathered", "equation", "multline", "eqnarray", "alignat")
)
_INFIX = ("over", "choose")
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
        read = joined(reader.formula())
    except _Beyond:
        return Legible(source, tuple(range(len(source))))
    glyphs: list[Glyph] = []
    for glyph, place in trim(read):
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
    """The formula exceeds `_DEEPEST` or `_LONGEST`."""


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0
        self.bold: list[tuple[int, int]] = []

    def formula(self) -> list[Part]:
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

    def _sequence(self, *stops: str) -> tuple[list[Part], str]:
        """Everything up to one of `stops`, which is skipped and returned, or up to the end ("")."""
        parts: list[Part] = []
        over: tuple[str, list[Part], int] | None = None
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
            make = fraction if name == "over" else binomial
            parts = [make(stripped(top), stripped(parts), place)]
        return parts, stopped

    def _is_command(self, name: str) -> bool:
        end = self.at + len(name) + 1
        return self.source.startswith("\\" + name, self.at) and not self.source[end : end + 1].isalpha()

    def _take(self, parts: list[Part]) -> None:
        character, place = self.source[self.at], self.at
        if character in "^_" and self.at + 1 < len(self.source):
            self.at += 1
            with self._deeper():
                self._script(parts, character, place)
        elif character.isspace() or character in "&~":
            self.at += 1
            parts.append(Part("space", [(" ", place)]))
        elif character in "'!" and (base := script_base(parts)):
            self.at += 1
            attach(base, [("′" if character == "'" else "!", place)])
        elif character.isascii() and character.isdigit():
            end = self.at
            while self.source[end : end + 1].isdigit() or (
                self.source[end : end + 1] == "." and self.source[end + 1 : end + 2].isdigit()
            ):
                end += 1
            self.at = end
            parts.append(Part("number", [(self.source[i], i) for i in range(place, end)]))
        elif character == "{":
            self._group(parts)
        else:
            self._add(parts, self._atom())

    def _group(self, parts: list[Part]) -> None:
        """Reads a group: its parts join the line, unless a script applies to the whole group."""
        place = self.at
        self.at += 1
        with self._deeper():
            inner, stop = self._sequence("}")
        if not stop:
            parts += [Part("open", [("{", place)]), *inner]
            return
        following = self.source[self.at : self.at + 1]
        shown = stripped(inner)
        if not shown and following in ("^", "_"):  # scripts before their base: {}^{14}C
            if script_base(parts):
                parts.append(Part("gap", [(" ", place)]))
            parts.append(Part("atom", []))
            return
        if len(shown) > 1 and following in ("^", "_", "'"):
            parts.append(Part("atom", bracketed(joined(shown))))
        else:
            self._add(parts, inner)

    def _add(self, parts: list[Part], more: Sequence[Part]) -> None:
        for part in more:
            before = parts[-1] if parts else None
            # A whole number directly before a fraction of whole numbers makes a mixed number.
            if part.whole and before and before.role == "number" and not before.scripts:
                mixed = [*before.glyphs, (" ", part.glyphs[0][1]), *part.glyphs]
                if "." not in [glyph for glyph, _ in before.glyphs]:
                    parts[-1] = Part("fraction", mixed, bracketed(mixed), "both")
                    continue
            parts.append(part)

    def _argument(self) -> list[Part]:
        """What a command applies to: one group without its braces, one character, or one command."""
        while self.source[self.at : self.at + 1].isspace():
            self.at += 1
        place = self.at
        if self.source[place : place + 1] != "{":
            return self._atom() if place < len(self.source) else []
        self.at += 1
        with self._deeper():
            inner, stop = self._sequence("}")
        return stripped(inner) if stop else [Part("open", [("{", place)]), *inner]

    def _atom(self) -> list[Part]:
        """One character or one command with its arguments."""
        character, place = self.source[self.at], self.at
        if character == "\\":
            with self._deeper():
                return self._command()
        self.at += 1
        return [Part(role_of(character), [("−" if character == "-" else character, place)])]

    def _script(self, parts: list[Part], mark: str, place: int) -> None:
        """An exponent (^) or an index (_) of the part before it."""
        inner = trim(joined(self._argument()))
        if mark == "^" and [glyph for glyph, _ in inner] == ["∘"]:
            inner = [("°", inner[0][1])]
        small = SUPER if mark == "^" else SUB
        base = script_base(parts)
        if base is None:
            base = Part("atom", [])
            parts.append(base)
        if inner and all(glyph in small for glyph, _ in inner):
            attach(base, [(small[glyph], at) for glyph, at in inner], mark)
        elif inner and all(glyph in "′″°†‡" for glyph, _ in inner):
            attach(base, inner)
        else:
            last = inner[-1][1] if inner else place
            marked = [(mark, place), ("(", place), *inner, (")", last)]
            if len(inner) != 1 or self.source[self.at : self.at + 1] in ("^", "_", "'", "!"):
                attach(base, marked)
            else:
                attach(base, [(mark, place), *inner], tight=marked)

    def _command(self) -> list[Part]:
        place = self.at
        end = place + 1
        while end < len(self.source) and self.source[end].isascii() and self.source[end].isalpha():
            end += 1
        if end == place + 1:
            return self._mark(place)
        name = self.source[place + 1 : end]
        self.at = end
        if name in _COMMANDS:
            return _COMMANDS[name](self, name, place)
        if name in WORDS:
            return [Part("limit" if name.startswith("lim") else "word", spread(WORDS[name], place))]
        if name in BIG:
            return [Part("big", spread(BIG[name], place))]
        if name in SYMBOLS:
            return [Part(role_of(SYMBOLS[name][0]), spread(SYMBOLS[name], place))]
        if name in PLAIN:
            return self._plain(name)
        if name in FACES or name == "mathbb":
            face = FACES.get(name, DOUBLE_STRUCK)
            return [
                Part(part.role, [(face.get(glyph, glyph), at) for glyph, at in part.glyphs])
                for part in self._argument()
            ]
        if name in ACCENTS:
            return _accented(name, joined(self._argument()), place)
        if name in DROPPED:
            return []
        if name in SPACES:
            return [Part("gap" if "quad" in name else "space", [(" ", place)])]
        return self._unknown(place)

    # ---- commands with arguments: called with the name and its offset, the reader after the name

    def _operator(self, name: str, place: int) -> list[Part]:
        self.at += self.source[self.at : self.at + 1] == "*"
        return [Part("word", joined(self._argument()))]

    def _plain(self, name: str) -> list[Part]:
        """A command that only changes the font."""
        begin = self.at
        inner = self._words() if PLAIN[name] else self._argument()
        if name in BOLD:
            self.bold.append((begin, self.at))
        if PLAIN[name]:
            return inner
        line = joined(inner)
        lone_word = name == "mathrm" and len(line) > 1 and all(glyph.isalnum() for glyph, _ in line)
        return [Part("atom", line)] if lone_word else inner

    def _fraction(self, name: str, place: int) -> list[Part]:
        top = self._argument()
        slash = max(self.at - 1, place)
        return [fraction(top, self._argument(), slash, place)]

    def _binomial(self, name: str, place: int) -> list[Part]:
        top = self._argument()
        middle = max(self.at - 1, place)
        return [binomial(top, self._argument(), middle, place)]

    def _brace(self, name: str, place: int) -> list[Part]:
        return [Part("word", [*spread(name, place), *bracketed(joined(self._argument()))])]

    def _boxed(self, name: str, place: int) -> list[Part]:
        inner = self._argument()
        alone = len(inner) == 1 or not self.source[self.at :].strip(" .,;")
        return inner if alone else [Part("atom", bracketed(joined(inner)))]

    def _arrow(self, name: str, place: int) -> list[Part]:
        arrow = Part("sign", [("→" if name == "xrightarrow" else "←", place)])
        attach(arrow, [("^", place), *bracketed(joined(self._argument()))])
        return [arrow]

    def _modulus(self, name: str, place: int) -> list[Part]:
        modulus = joined(self._argument())
        words = [*spread("(mod ", place), *modulus, (")", modulus[-1][1] if modulus else place)]
        return [Part("gap", [(" ", place)]), Part("atom", words)]

    def _tag(self, name: str, place: int) -> list[Part]:
        words = [glyph for part in self._words() for glyph in part.glyphs]
        return [Part("gap", [(" ", place)]), Part("gap", bracketed(words))]

    def _negated(self, name: str, place: int) -> list[Part]:
        negated = joined(self._argument())
        return [Part("sign", [*negated, ("\u0338", max(self.at - 1, place))])]

    def _unopened(self, name: str, place: int) -> list[Part]:
        r"""An \end without its \begin, as written."""
        end = self.source.find("}", self.at)
        self.at = end + 1 if self.source[self.at : self.at + 1] == "{" and end >= 0 else self.at
        return [Part("gap", [(self.source[i], i) for i in range(place, self.at)])]

    def _delimiter(self, name: str, place: int) -> list[Part]:
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

    def _mark(self, place: int) -> list[Part]:
        """Reads a backslash and one character that is not a letter."""
        following = self.source[place + 1 : place + 2]
        self.at = place + 1 + len(following)
        if following == "\\":
            self._skip_row_gap()
            return [Part("gap", [("\n", place)])]
        if following in ",;:> \n":
            return [Part("space", [(" ", place)])] if following else [Part("atom", [("\\", place)])]
        if following == "!":
            return []
        if following == "|":
            return [Part("bar", [("‖", place)])]
        if following in "{}%$#_&":
            return [Part(role_of(following), [(following, place + 1)])]
        return [Part("atom", [("\\", place), (following, place + 1)])]

    def _skip_row_gap(self) -> None:
        """Skips the length behind a line break: \\\\[4pt]."""
        match = _ROW_GAP.match(self.source, self.at)
        self.at = match.end() if match else self.at

    def _root(self, name: str, place: int) -> list[Part]:
        index: list[Glyph] = []
        if self.source[self.at : self.at + 1] == "[":
            self.at += 1
            with self._deeper():
                index = trim(joined(self._sequence("]")[0]))
        sign = max(self.at - 1, place)
        inner = self._argument()
        glyphs = joined(inner)
        wrapped = bracketed(glyphs, sign)
        lone = len(inner) == 1 and inner[0].role in ("atom", "number") and not inner[0].guards
        lone = lone and (len(glyphs) == 1 or inner[0].role == "number") and not inner[0].scripts
        if not index:
            bare = [("√", sign), *(glyphs if lone else wrapped)]
            return [Part("atom", bare, [("√", sign), *wrapped], "right")]
        if all(glyph in SUPER for glyph, _ in index):
            head = [*((SUPER[glyph], at) for glyph, at in index), ("√", sign)]
            bare = [*head, *(glyphs if lone else wrapped)]
            return [Part("atom", bare, bracketed(bare), "both")]
        head = [("√", place), ("[", place), *index, ("]", sign)]
        return [Part("atom", [*head, *wrapped])]

    def _environment(self, name: str, place: int) -> list[Part]:
        end = self.source.find("}", self.at)
        if self.source[self.at : self.at + 1] != "{" or end < 0:
            return self._unknown(place)
        written = self.source[self.at + 1 : end]
        kind = written.rstrip("*")
        closing = f"\\end{{{written}}}"
        known = kind in _MATRICES or kind in _BARE_MATRICES or kind in _LINES or kind in ("cases", "dcases")
        if not known or self.source.find(closing, end) < 0:
            self.at = end + 1
            return [Part("atom", [(self.source[i], i) for i in range(place, self.at)])]
        self.at = end + 1
        if kind in ("array", "alignat") and self.source[self.at : self.at + 1] == "{":
            self.at = max(self.at, self.source.find("}", self.at) + 1)
        rows = self._rows(closing)
        close = self.at - 1
        if kind in _LINES:
            return as_lines(rows)
        glyphs = as_matrix(rows)
        if kind in ("cases", "dcases"):
            ends = not self.source[self.at :].strip(" .,;\\}&\n") or self.source.startswith("\\\\", self.at)
            shown = [("{", place), (" ", place), *glyphs, *([] if ends else [(" ", close), ("}", close)])]
            return [Part("atom", shown)]
        if kind in _BARE_MATRICES and self._is_delimited(place):
            return [Part("gap", glyphs)]
        pair = _MATRICES.get(kind, "[]")
        return [Part("atom", [(pair[0], place), *glyphs, (pair[1], close)])]

    def _is_delimited(self, place: int) -> bool:
        """Whether a matrix that begins at `place` is directly between delimiters."""
        return self.source[:place].rstrip()[-1:] in ("(", "[", "{", "|", ".") and (
            self.source[self.at :].lstrip()[:1] in (")", "]", "}", "|", "\\")
        )

    def _rows(self, closing: str) -> list[list[list[Part]]]:
        """The rows of an environment up to its end; each is a list of cells."""
        rows: list[list[list[Part]]] = [[]]
        with self._deeper():
            while True:
                cell, stop = self._sequence(closing, "&", "\\\\")
                rows[-1].append(stripped(cell))
                if stop == "\\\\":
                    self._skip_row_gap()
                    rows.append([])
                elif stop != "&":
                    break
        return [row for row in rows if any(row)]

    def _words(self) -> list[Part]:
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
        words = trim(glyphs)
        if not words:
            return [Part("gap", glyphs)]
        first = glyphs.index(words[0])
        before, behind = glyphs[:first], glyphs[first + len(words) :]
        inner = Part("atom", words) if not any(g.isspace() for g, _ in words) else Part("gap", words)
        return [*([Part("gap", before)] if before else []), inner, *([Part("gap", behind)] if behind else [])]

    def _unknown(self, place: int) -> list[Part]:
        """An unknown command with the groups behind it, as written."""
        while self.source[self.at : self.at + 1] == "{":
            self.at += 1
            with self._deeper():
                self._sequence("}")
        return [Part("atom", [(self.source[i], i) for i in range(place, self.at)])]


_Command = Callable[[_Reader, str, int], list[Part]]
_COMMANDS: dict[str, _Command] = {
    **dict.fromkeys(("operatorname", "DeclareMathOperator"), _Reader._operator),
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"), _Reader._fraction),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), _Reader._binomial),
    **dict.fromkeys(("underbrace", "overbrace"), _Reader._brace),
    **dict.fromkeys(("xrightarrow", "xleftarrow"), _Reader._arrow),
    **dict.fromkeys(("left", "right", "middle"), _Reader._delimiter),
    "sqrt": _Reader._root,
    "boxed": _Reader._boxed,
    "pmod": _Reader._modulus,
    "tag": _Reader._tag,
    "not": _Reader._negated,
    "begin": _Reader._environment,
    "end": _Reader._unopened,
}


def _accented(name: str, inner: list[Glyph], place: int) -> list[Part]:
    # Marks of marks double the text with each level.
    if len(inner) > _LONGEST:
        raise _Beyond
    mark = ACCENTS[name]
    if len(inner) == 1 or name in ("overline", "underline"):
        return [Part("atom", [part for glyph, at in inner for part in ((glyph, at), (mark, at))])]
    return [Part("word", [*spread(name, place), *bracketed(inner, place)])]
