"""The process that typesets LaTeX formulas.

Reads a line of JSON per formula (`Formula`) and writes a line for each, in order: a `Typeset`, or `{}` if the
formula is wrong, unsupported or exceeds a limit. The first line, `{}`, says that the process is ready.

A process, because pure Python would hold the window's interpreter lock, and because LaTeX can be written that
takes for ever: a formula has `_CPU_S` of processor time, and the process ends when it exceeds its memory. It
also ends when its stdin closes, and after `_IDLE_S` without a formula.
"""

from __future__ import annotations

import os
import re
import select
import signal
import unicodedata
from collections import Counter
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import msgspec

from core.system.child_bounds import LineOutput, bound, watch
from core.system.prepared import prepared
from core.typesetting import EM, LONGEST, Formula, Letters, Typeset

if TYPE_CHECKING:
    from ziamath.mathfont import MathFont

_MOST_EMS = 400  # in width and in height
_MOST_PATH = 400_000  # characters of path data
_CPU_S = 2.0
_IDLE_S = 60.0
_MEMORY_BYTES = 400 * 1024 * 1024
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# The converter copies unsupported commands into its output.
_UNKNOWN = re.compile(r">\s*\\[A-Za-z]+")


def main() -> int:
    """Answers lines until stdin is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = LineOutput()
    watch(_MEMORY_BYTES, lambda: os._exit(1))
    bound(_MEMORY_BYTES)
    signal.signal(signal.SIGVTALRM, _too_long)
    decoder = msgspec.json.Decoder(prepared(Formula))
    _font()
    output.write(b"{}")
    waiting = b""
    while select.select([0], [], [], _IDLE_S)[0] and (data := os.read(0, 65_536)):
        *lines, waiting = (waiting + data).split(b"\n")
        for line in lines:
            output.write(_answer(decoder.decode(line)))
    return 0


def _answer(formula: Formula) -> bytes:
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S)
    try:
        return msgspec.json.encode(typeset(formula))
    except Exception:  # whatever two parsers of any text raise
        return b"{}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError


def typeset(formula: Formula) -> Typeset:
    """Typesets `formula`. Raises errors of any type if it cannot."""
    from ziamath.config import config
    from ziamath.tex import tex2mml
    from ziamath.zmath import Math

    if len(formula.latex) > LONGEST:
        raise ValueError("too long")
    config.svg2 = False  # a path for each glyph, without references
    config.precision = 1  # without decimals it loses zeros of whole numbers
    latex = _prepared(formula.latex)
    mathml = tex2mml(latex, inline=not formula.display)
    if _UNKNOWN.search(mathml) or _lost(latex, mathml):
        raise ValueError("not supported")
    _font()
    made = Math(_LENGTH.sub(_in_ems, mathml), size=EM)
    box = made.node.bbox
    drawing = ET.Element("g")
    made.node.draw(0, 0, drawing)
    # Empty shapes have a height below 0.
    if not all(1 <= size <= _MOST_EMS * EM for size in (box.xmax - box.xmin, box.ymax - box.ymin)):
        raise ValueError("empty or too large")
    fill: list[str] = []
    strokes: list[tuple[str, int]] = []
    letters: list[Letters] = []
    for element in drawing.iter():
        _add(element, fill, strokes, letters)
    if sum(map(len, fill)) > _MOST_PATH:
        raise ValueError("too many glyphs")
    left = round(box.xmin)
    return Typeset(
        round(box.xmax) - left,
        round(box.ymax),
        round(-box.ymin),
        " ".join(fill),
        tuple(strokes),
        tuple(letters),
        _portable(mathml, formula.latex),
    )


# A formula may contain any elements and attributes, such as links and styles: only these are kept.
_ELEMENTS = re.compile(
    "m(?:ath|row|[ions]|text|space|frac|sqrt|root|(?:su[bp]|subsup|under|over|underover)|table|tr|td|fenced"
    "|enclose|phantom|padded|style|multiscripts|prescripts)|none"
)
_ATTRIBUTES = re.compile(
    "display|displaystyle|scriptlevel|mathvariant|stretchy|fence|form|separators?|symmetric|largeop"
    "|movablelimits|accent|accentunder|minsize|maxsize|[lr]space|width|height|depth|linethickness"
    "|column(?:align|lines|spacing)|row(?:align|lines|spacing)|frame|notation|linebreak|open|close"
)
_PLAIN_VALUE = re.compile(r"[\w .,%+\-()\[\]{}|]*")


def _portable(mathml: str, latex: str) -> str:
    """`mathml` for other programs, with its LaTeX. Raises `ValueError` for an element of another kind."""
    root = ET.fromstring(mathml)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if not _ELEMENTS.fullmatch(element.tag):
            raise ValueError(element.tag)
        element.attrib = {
            name: value
            for name, value in element.attrib.items()
            if _ATTRIBUTES.fullmatch(name) and _PLAIN_VALUE.fullmatch(value)
        }
    root.attrib |= {"xmlns": "http://www.w3.org/1998/Math/MathML", "alttext": latex.strip()}
    return ET.tostring(root, encoding="unicode")


def _add(
    element: ET.Element, fill: list[str], strokes: list[tuple[str, int]], letters: list[Letters]
) -> None:
    """Adds what one element of the drawing draws. Colours are ignored: a formula has that of its text."""
    get = element.attrib.get
    if element.tag == "text":
        letters.append(
            Letters(element.text or "", *(round(float(get(name, "0"))) for name in ("x", "y", "size")))
        )
        return
    data = get("d", "")
    if element.tag == "rect":
        x, y, width, height = (round(float(get(name, "0"))) for name in ("x", "y", "width", "height"))
        if "stroke" not in element.attrib:  # a rule is never thinner than visible
            width, height = max(width, 1), max(height, 1)
        data = f"M {x} {y} L {x + width} {y} L {x + width} {y + height} L {x} {y + height} Z"
    if data and "stroke" in element.attrib:
        strokes.append((data, round(float(get("stroke-width", "1")))))
    elif data:
        fill.append(_NUMBER.sub(lambda number: str(round(float(number.group()))), data))


@cache
def _font() -> MathFont:
    """ziamath's font, with `<text>` elements for the characters that it does not have."""
    from ziafont.fonttypes import BBox
    from ziafont.glyph import SimpleGlyph
    from ziamath.mathfont import MathFont
    from ziamath.zmath import loadedfonts

    class Missing(SimpleGlyph):
        def __init__(self, character: str, font: MathFont) -> None:
            units = font.info.layout.unitsperem
            self._advance = int(units * (1.0 if unicodedata.east_asian_width(character) in "WF" else 0.6))
            super().__init__(0, [], BBox(0, self._advance, -units // 8, units * 7 // 8), font)
            self._character = character

        def advance(self, nextchr: SimpleGlyph | None = None) -> int:
            return self._advance

        def place(self, x: float, y: float, point_size: float) -> ET.Element:
            element = ET.Element("text", x=f"{x}", y=f"{y}", size=f"{point_size}")
            element.text = self._character
            return element

    class Font(MathFont):
        def glyph(self, char: str) -> SimpleGlyph:
            found = super().glyph(char)
            return found if found.index or char.isspace() else Missing(char, self)

    font = loadedfonts["default"]
    font.__class__ = Font  # reading the file again takes a quarter of a second
    font.basesize = EM
    return font


def _prepared(latex: str) -> str:
    """`latex` rewritten with commands that the converter supports."""
    if not all(map(_ENVIRONMENT.fullmatch, _BEGUN.findall(latex))):
        raise ValueError("unknown environment")
    latex = _TEXT.sub(lambda found: found.group(1) + escape(found.group(2)) + "}", latex)
    latex = _CHEMISTRY.sub(lambda found: _chemistry(found.group(1)), latex)
    latex = _OPERATOR.sub(lambda found: _operator(found.group(1), found.group(2)), latex)
    for pattern, written in _WRITTEN:
        latex = pattern.sub(written, latex)
    return latex


# The converter drops the names of others.
_ENVIRONMENT = re.compile(
    "(?:[pbBvV]?matrix|smallmatrix|array|[dr]?cases|align(?:ed|at|edat)?|gather(?:ed)?|split|equation|multline"
    r"|eqnarray|subarray)\*?"
)
_BEGUN = re.compile(r"\\begin\s*\{([^{}]*)\}")
_TEXT = re.compile(r"(\\(?:text(?:bf|it|rm|tt|sf|normal)?|mbox|hbox)\s*\{)([^{}$\\]*)\}")  # is not escaped
_CHEMISTRY = re.compile(r"\\ce\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_ARROWS = {
    "->": r"\rightarrow ",
    "<-": r"\leftarrow ",
    "<=>": r"\rightleftharpoons ",
    "<->": r"\leftrightarrow ",
}
_IN_CHEMISTRY = re.compile(
    r"(<=>|<->|->|<-)|(?<=[A-Za-z)\]}])(\d+)|\^?(?:(?<=\^)(\d*[+-])|(?<=[A-Za-z)\]])([+-])(?=\s|$))|(\\[A-Za-z]+)|([A-Za-z]+)"
)
_OPERATOR = re.compile(r"\\operatorname\s*+(\*?)\s*+\{((?:[^{}]|\{[^{}]*\})*)\}")
_WRITTEN = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"\\(?:label|notag|nonumber)\b(?:\{[^{}]*\})?", ""),
        (r"\\tag\*?\{([^{}]*)\}", r"\\qquad\\text{(\1)}"),
        (r"\\begin\{alignat\*?\}\{\d+\}", r"\\begin{align*}"),
        (r"\\end\{alignat\*?\}", r"\\end{align*}"),
        # The converter numbers the lines of the others.
        (r"\\(begin|end)\{(align|gather|equation|eqnarray|multline)\}", r"\\\1{\2*}"),
        (r"\\math(?:op|bin|rel|ord|open|close|punct|inner)\b", ""),
        # As high as letters, unless they follow \left or \right.
        (r"\\[lr]Vert\b", r"\\|"),
        (r"\\[lr]vert\b", "|"),
        (r"\\not\s*=", r"\\neq "),
        (r"\\not\s*\\in\b", r"\\notin "),
        (r"\\(?:text|mbox|mathrm)\{\}", ""),
        (r"(\\\\)\s*\*?\[\s*-?[\d.]+\s*[a-z]{2}\s*\]", r"\1 "),  # the height of a row
    )
)


def _chemistry(formula: str) -> str:
    """mhchem's common notation: upright letters, indices, charges and arrows."""

    def written(found: re.Match[str]) -> str:
        arrow, index, charge, lone, command, letters = found.groups()
        charge = charge or lone
        if arrow:
            return _ARROWS[arrow]
        if index or charge:
            return f"_{{{index}}}" if index else f"^{{{charge}}}"
        return f"{command} " if command else rf"\mathrm {{{letters}}}"

    return _IN_CHEMISTRY.sub(written, formula)


def _operator(star: str, name: str) -> str:
    plain = re.sub(
        r"\\[,;: ]|~|\\(?:mathrm|text|rm)\b|[{}]", lambda found: " " * (found.group() not in "{}"), name
    )
    if re.fullmatch(r"[A-Za-z ]+", plain):
        return rf"\operatorname{star}{{{' '.join(plain.split())}}}"
    return rf"\mathrm {{{name}}}"


# Points in the unit, and its name. ziamath takes points for pixels of the type size that it is given.
_POINTS = {"pt": 1.0, "bp": 1.0, "mm": 2.845, "cm": 28.45, "in": 72.27, "pc": 12.0}
_LENGTH = re.compile(rf"(-?\d+(?:\.\d+)?)({'|'.join(_POINTS)})(?=[\" ])")


def _in_ems(length: re.Match[str]) -> str:
    """A length of a font of 10 points."""
    return f"{float(length.group(1)) * _POINTS[length.group(2)] / 10:.3f}em"


_IGNORED = re.compile(
    r"\\(?:begin|end)\{[^{}]*\}(?:\{[^{}]*\})?|\\(?:color|textcolor|hspace|vspace|mspace|href|style|class)\*?\{[^{}]*\}"
    r"|\[\s*-?[\d.]+\s*[a-z]{2}\s*\]|\\[A-Za-z]+|%[^\n]*"
)


def _lost(latex: str, mathml: str) -> bool:
    """Whether a letter or digit of `latex` outside of commands is not in `mathml`."""
    texts = unicodedata.normalize("NFKD", "".join(ET.fromstring(mathml).itertext()))
    wanted = Counter(character for character in _IGNORED.sub(" ", unescape(latex)) if character.isalnum())
    wanted = Counter(unicodedata.normalize("NFKD", "".join(wanted.elements())))
    return any(texts.count(character) < count for character, count in wanted.items())
