"""TextStyle: the face, the line height and the tint's measures of each kind of text.

All measures are logical pixels. Lines are on a fixed grid: the style's own face determines the
baseline, so that an emoji or a Chinese character from another face does not move it. A `zoom`
multiplies all of a style's measures; lines and glyphs keep whole pixels.

CodeColours: syntax colors of code blocks, lexed by Pygments in slices between paint events. Growing text is
lexed again from its beginning once it has become considerably longer: later text may change the class of a
word, and the work stays proportional. Green and amber mean token classes and vermilion means failure, so code
has the blue and the purple of the series, and gray for comments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QFont, QFontMetricsF
from PySide6.QtWidgets import QWidget

from app.richtext.markdown.piece import Piece, report
from app.theme.fonts import enlarged, mono_font, ui_font
from app.theme.theme import color

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
        """Highlight `text`. `whole`: it is complete; otherwise small additions wait for more."""
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


_SLICE_S = 0.003
_COLORS: dict[WordKind, str] = {
    "keyword": "series_purple",
    "string": "series_blue",
    "number": "series_blue",
    "comment": "text2",
    "name": "accent",
}


class CodeColours(QObject):
    """Colours for one canvas, which is repainted when more of the code is lexed."""

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._known: WeakKeyDictionary[object, Highlight] = WeakKeyDictionary()
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._go_on)

    def of(self, owner: object, code: Piece, *, whole: bool) -> list[tuple[int, int, QColor]]:
        """The coloured stretches of `code`, as far as they are known; more may come soon.

        They are kept as long as `owner` lives. `whole`: the code will not grow.
        """
        highlight = self._known.get(owner)
        if highlight is None:
            highlight = self._known[owner] = Highlight(code.language)
        highlight.set_text(code.text, whole)
        if not self._advance(highlight):
            self._timer.start()
        length = len(code.text)
        colours = {kind: color(name) for kind, name in _COLORS.items()}
        return [(s.start, s.end, colours[s.kind]) for s in highlight.stretches if s.end <= length]

    def _go_on(self) -> None:
        waiting = [highlight for highlight in self._known.values() if not self._advance(highlight)]
        self._canvas.update()
        if waiting:
            self._timer.start()

    def _advance(self, highlight: Highlight) -> bool:
        until_s = time.perf_counter() + _SLICE_S
        return highlight.advance(lambda: time.perf_counter() >= until_s)


# Inter is set a little tighter than it is drawn; the macOS system face brings its own tracking.
_TRACKING_EM = -0.006
_TABLE = (14, 21)
_THOUGHT = (13, 20)
_HEADINGS = {1: (20, 28), 2: (17, 27), 3: (15, 25)}


@dataclass(frozen=True)
class TintMeasures:
    """Distances from the baseline: `top` up to the tint's upper edge, `rule` down to the underline."""

    top: float
    height: float
    rule: float
    radius: float
    overhang: float


@dataclass(frozen=True)
class TextStyle:
    """`baseline_px` is from the top of a line."""

    font: QFont
    size_px: float
    line_px: int
    baseline_px: float
    tint: TintMeasures


@cache
def answer_style(size_px: float = 15, line_px: int = 25, weight: int = 400, zoom: float = 1.0) -> TextStyle:
    """Running text. The tint's measures are those of 15 px, scaled."""
    size_px, line_px = enlarged(size_px, zoom), round(line_px * zoom)
    font = ui_font(size_px, weight)
    track(font, size_px)
    scale = size_px / 15
    return _style(font, size_px, line_px, TintMeasures(16 * scale, 21 * scale, 4.75 * scale, 4, 2))


@cache
def code_style(zoom: float = 1.0) -> TextStyle:
    """Code: the tint is as high as the glyphs and hangs over nowhere."""
    size_px = enlarged(12.5, zoom)
    font = mono_font(size_px)
    metrics = QFontMetricsF(font)
    ascent, descent = round(metrics.ascent()), round(metrics.descent())
    return _style(
        font, size_px, round(21 * zoom), TintMeasures(ascent, ascent + descent, descent - 0.75, 3, 0)
    )


def style_of(piece: Piece, zoom: float = 1.0) -> TextStyle:
    """The style of an answer's piece."""
    if piece.kind == "code":
        return code_style(zoom)
    if piece.kind == "table":
        return answer_style(*(_THOUGHT if piece.thought >= 0 else _TABLE), zoom=zoom)
    if piece.thought >= 0:
        return answer_style(*_THOUGHT, weight=600 if piece.kind == "heading" else 400, zoom=zoom)
    if piece.kind == "heading":
        return answer_style(*_HEADINGS.get(piece.level, _HEADINGS[3]), weight=600, zoom=zoom)
    return answer_style(zoom=zoom)


def track(font: QFont, size_px: float) -> None:
    """Set `font` as tight as the design has it."""
    if font.family() == "Inter":
        font.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, _TRACKING_EM * size_px)


def _style(font: QFont, size_px: float, line_px: int, tint: TintMeasures) -> TextStyle:
    metrics = QFontMetricsF(font)
    # Whole pixels, so that tints and underlines have sharp edges on every screen.
    baseline = round((line_px - metrics.ascent() - metrics.descent()) / 2 + metrics.ascent())
    return TextStyle(font, size_px, line_px, baseline, tint)
