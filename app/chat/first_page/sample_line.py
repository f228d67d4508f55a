"""SampleLine: one sentence with its tokens tinted, to show how an answer is written. Not an answer."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.richtext.layout.piece_layout import PieceLayout
from app.richtext.layout.text_style import answer_style
from app.richtext.layout.tint_paint import InkTable, paint_tints
from app.richtext.markdown.piece import Span
from app.theme.theme import Theme
from core.events import Origin

# Text, class and step, as a model and a drafter could have given them.
_TOKENS: tuple[tuple[str, Origin, int], ...] = (
    ("When", "normal", 1),
    (" the", "normal", 2),
    (" tide", "normal", 3),
    (" turns", "accepted", 4),
    (",", "accepted", 4),
    (" the", "bonus", 4),
    (" har", "accepted", 5),
    ("bour", "accepted", 5),
    (" lights", "accepted", 5),
    (" are", "accepted", 5),
    (" lit", "accepted", 5),
    (" along", "bonus", 5),
    (" the", "accepted", 6),
    (" north", "accepted", 6),
    (" qu", "accepted", 6),
    ("ay", "accepted", 6),
    (" first", "bonus", 6),
    (".", "normal", 7),
)


class SampleLine:
    """Laid out for one width."""

    def __init__(self, width: float) -> None:
        text = "".join(token for token, _, _ in _TOKENS)
        spans: list[Span] = []
        for number, (token, _, _) in enumerate(_TOKENS):
            start = spans[-1].end if spans else 0
            spans.append(Span(number, start, start + len(token)))
        self._layout = PieceLayout(text, answer_style(17, 30), width)
        self._inks = InkTable()
        self._inks.extend(text, spans, [(origin, step) for _, origin, step in _TOKENS])

    @property
    def height(self) -> int:
        return round(self._layout.height)

    def paint(self, painter: QPainter, left: float, top: float, theme: Theme) -> None:
        """Paint with the text's left top there."""
        lines = range(len(self._layout.lines))
        origin = QPointF(left, top)
        paint_tints(painter, self._layout, self._inks, lines, origin, theme, "always", None)
        painter.setPen(theme.color("text"))
        self._layout.draw(painter, left, top, QRectF(left, top, 10_000, self.height))
