"""CodeColours: syntax colours of code blocks, lexed in slices between paint events.

Green and amber mean token classes and vermilion means failure, so code has the blue and the
purple of the series, and grey for comments.
"""

from __future__ import annotations

import time
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from app.richtext.layout.piece_box import PieceBox
from app.richtext.markdown.highlight import Highlight, WordKind
from app.theme.theme import Theme

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

    def __init__(self, theme: Theme, canvas: QWidget) -> None:
        super().__init__(canvas)
        self._theme = theme
        self._canvas = canvas
        self._known: WeakKeyDictionary[PieceBox, Highlight] = WeakKeyDictionary()
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._go_on)

    def of(self, box: PieceBox) -> list[tuple[int, int, QColor]]:
        """The coloured stretches of `box`, as far as they are known; more may come soon."""
        highlight = self._known.get(box)
        if highlight is None:
            highlight = self._known[box] = Highlight(box.piece.language)
        highlight.set_text(box.piece.text, box.is_whole)
        if not self._advance(highlight):
            self._timer.start()
        length = len(box.piece.text)
        colours = {kind: self._theme.color(name) for kind, name in _COLORS.items()}
        return [(s.start, s.end, colours[s.kind]) for s in highlight.stretches if s.end <= length]

    def _go_on(self) -> None:
        waiting = [highlight for highlight in self._known.values() if not self._advance(highlight)]
        self._canvas.update()
        if waiting:
            self._timer.start()

    def _advance(self, highlight: Highlight) -> bool:
        until_s = time.perf_counter() + _SLICE_S
        return highlight.advance(lambda: time.perf_counter() >= until_s)
