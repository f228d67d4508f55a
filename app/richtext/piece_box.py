"""PieceBox: position of one piece, its text layout and its decoration.

Code has a frame with a header, quotes a rule, list items a marker, both at the side where the text starts.
A table or formula that is wider than the column scrolls sideways. Measures are from the left edge of the
reading column and the top of the canvas.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath, QPen

from app.controls.shapes import is_rtl
from app.richtext.markdown.piece import Piece
from app.richtext.piece_layout import PieceLayout, without_code
from app.richtext.table_layout import TableLayout
from app.richtext.text_style import TextStyle, style_of
from app.richtext.tint_paint import InkTable, LineMarks, marks_of
from app.theme.fonts import enlarged, enlarged_ui_font, ui_font
from app.theme.theme import color, theme
from app.theme.zoom import px

CODE_HEADER_PX = 30
_CODE_PAD_LEFT_PX = 14
_CODE_PAD_TOP_PX = 9
_CODE_PAD_BOTTOM_PX = 12
_CODE_RADIUS_PX = 9
_LABEL_CHARACTERS = 60
_LIST_INDENT_PX = 24
_MARKER_GAP_PX = 6
_MARKER_HANG_PX = 6
_QUOTE_INDENT_PX = 16
_RULE_HEIGHT_PX = 9
THOUGHT_HEAD_PX = 20
_SCROLL_BAR_PX = 4
_SCROLL_ROOM_PX = 10
_THOUGHT_INDENT_PX = 22
_THOUGHT_RULE_PX = 6


class PieceBox:
    """`top` and `height` place the whole box, `text_left` and `text_top` its text."""

    def __init__(
        self,
        piece: Piece,
        top: float,
        width: float,
        style: TextStyle | None = None,
        *,
        hidden: bool = False,
        rule_top: float | None = None,
    ) -> None:
        """A `hidden` one takes no room. Rules at the left begin at `rule_top`, else at `top`."""
        self.piece = piece
        self.hidden = hidden
        self.is_whole = True  # False while the piece is still being written
        self.rule_top = top if rule_top is None else rule_top
        self._inks: InkTable | None = None
        self._ink: Callable[[PieceBox], InkTable] | None = None
        self._marks: dict[int, LineMarks] = {}
        self.top = top
        self._zoom = zoom = theme.zoom
        self.rtl = _runs_from_the_right(piece)
        indent: float = zoom * (piece.depth * _LIST_INDENT_PX + piece.quotes * _QUOTE_INDENT_PX)
        # A wide marker hangs out a little, as far as nothing is cut off; then it pushes the text.
        self._marker_width = QFontMetricsF(_marker_font(zoom)).horizontalAdvance(piece.marker)
        hang_px = _LIST_INDENT_PX + _MARKER_HANG_PX - _MARKER_GAP_PX
        indent += max(0.0, self._marker_width - zoom * hang_px)
        self.left = zoom * _THOUGHT_INDENT_PX if piece.thought >= 0 else 0.0
        self.right = width
        if self.rtl:
            self.right -= indent
        else:
            self.left += indent
        room = self.right - self.left - (2 * _CODE_PAD_LEFT_PX if self.is_code else 0)
        link = color("accent")
        style, room = style or style_of(piece, zoom), max(40.0, room)
        self.layout: PieceLayout
        if piece.kind == "table" and not hidden:
            self.layout = TableLayout(piece, style, room, link)
        else:
            text, direction = "" if hidden else piece.text, False if self.is_code else None
            self.layout = PieceLayout(text, style, room, piece.styles, link, direction)
        # How far a wide table or formula can be and is scrolled to the right.
        self.most_scroll = max(0.0, self.layout.full_width - room)
        self.scroll = self.most_scroll if self.rtl else 0.0

    @property
    def inks(self) -> InkTable:
        """The characters of each token. Created on first use: most text is never visible."""
        if self._inks is None:
            self._inks = self._ink(self) if self._ink else InkTable()
        return self._inks

    @property
    def is_inked(self) -> bool:
        """Whether `inks` has been created."""
        return self._inks is not None

    def ink_by(self, ink: Callable[[PieceBox], InkTable]) -> None:
        """`ink` creates the inks on first use."""
        self._ink = ink

    def marks(self, lines: range) -> list[LineMarks]:
        """Tints and underlines of those lines."""
        for number in lines:
            if number not in self._marks:
                self._marks[number] = marks_of(self.layout, self.inks, number)
        return [self._marks[number] for number in lines]

    def forget_marks(self, first_line: int) -> None:
        """The text or its tokens changed from that line on."""
        for number in [number for number in self._marks if number >= first_line]:
            del self._marks[number]

    @property
    def is_code(self) -> bool:
        return self.piece.kind == "code"

    @property
    def text_left(self) -> float:
        return self.left + (_CODE_PAD_LEFT_PX if self.is_code else 0) - self.scroll

    @property
    def window(self) -> QRectF:
        """Where a table or formula that scrolls is seen; empty for everything else."""
        return (
            QRectF(self.left, self.top, self.right - self.left, self.height) if self.most_scroll else QRectF()
        )

    def scroll_by(self, pixels: float) -> bool:
        """Scroll a wide table or formula to the right. Returns whether it moved."""
        before = self.scroll
        self.scroll = min(max(0.0, before + pixels), self.most_scroll)
        return self.scroll != before

    def scroll_to(self, left: float, right: float) -> None:
        """Scroll so that the horizontal range [left, right] is visible."""
        if left < self.left:
            self.scroll_by(left - self.left)
        elif right > self.right:
            self.scroll_by(min(right - self.right, left - self.left))

    @property
    def text_top(self) -> float:
        return self.top + (1 + px(CODE_HEADER_PX) + _CODE_PAD_TOP_PX if self.is_code else 0)

    @property
    def height(self) -> float:
        if self.hidden:
            return 0.0
        if self.piece.kind == "rule":
            return px(_RULE_HEIGHT_PX)
        if self.piece.kind == "thought":
            return px(THOUGHT_HEAD_PX)
        if self.is_code:
            return self.text_top - self.top + self.layout.height + _CODE_PAD_BOTTOM_PX
        return self.layout.height + (px(_SCROLL_ROOM_PX) if self.most_scroll else 0)

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def frame(self) -> QRectF:
        """The frame of a code block."""
        return QRectF(self.left, self.top, self.right - self.left, self.height)

    def shows(self, piece: Piece) -> bool:
        """Whether `piece` looks the same as the current piece."""
        mine = self.piece
        return piece == replace(mine, source_start=piece.source_start, source_end=piece.source_end)

    def grows_to(self, piece: Piece) -> bool:
        """Whether `piece` is the current piece with text added at its end."""
        mine = replace(self.piece, text=piece.text, segments=piece.segments, source_end=piece.source_end)
        grows = piece == mine and piece.text.startswith(self.piece.text) and not self.hidden
        return grows and _runs_from_the_right(piece) == self.rtl

    def extend(self, piece: Piece) -> int:
        """Show `piece`, which this `grows_to`. The number of the first changed line."""
        self.piece = piece
        return self.layout.extend(piece.text)

    def move_by(self, distance_px: float) -> None:
        """Move down: what is above has become higher."""
        self.top += distance_px
        self.rule_top += distance_px

    def lines_in(self, clip: QRectF) -> range:
        """The numbers of the lines that touch `clip`."""
        if self.piece.kind in ("rule", "thought"):
            return range(0)
        return self.layout.lines_between(clip.top() - self.text_top, clip.bottom() - self.text_top)

    def paint_around(self, painter: QPainter, lines: range) -> None:
        """Paint the frame, rules and code background of `lines`, without text and tints."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for level in range(self.piece.quotes):
            distance = (self.piece.quotes - level) * _QUOTE_INDENT_PX * self._zoom
            x = self.right + distance - 2 if self.rtl else self.left - distance
            painter.fillRect(QRectF(x, self.rule_top, 2, self.bottom - self.rule_top), color("hair2"))
        if self.piece.thought >= 0 and self.piece.kind != "thought":
            rule = QRectF(_THOUGHT_RULE_PX, self.rule_top, 2, self.bottom - self.rule_top)
            painter.fillRect(rule, color("hair2"))
        if isinstance(self.layout, TableLayout):
            self._paint_grid(painter, self.layout)
        if self.piece.kind == "rule":
            y = round(self.top + px(_RULE_HEIGHT_PX) / 2)
            painter.fillRect(QRectF(self.left, y, self.right - self.left, 1), color("hair"))
        if self.is_code:
            self._paint_frame(painter)
        if lines:
            self._paint_inline_code(painter, lines)

    def paint_marker(self, painter: QPainter) -> None:
        """Paint the marker, which is beside what may scroll."""
        if not self.piece.marker:
            return
        painter.setFont(_marker_font(self._zoom))
        painter.setPen(color("text2"))
        first = self.layout.lines[0].baseline if self.layout.lines else self.layout.style.baseline_px
        baseline = self.text_top + first
        indent, gap = _LIST_INDENT_PX * self._zoom, _MARKER_GAP_PX * self._zoom
        distance = max(indent, self._marker_width + gap)
        x = self.right + distance - self._marker_width if self.rtl else self.left - distance
        # Inside right-to-left marks the period of a number is at its left.
        marker = f"\u200f{self.piece.marker}\u200f" if self.rtl else self.piece.marker
        painter.drawText(QPointF(x, baseline), marker)

    def _paint_frame(self, painter: QPainter) -> None:
        shape = QPainterPath()
        shape.addRoundedRect(self.frame.adjusted(0.5, 0.5, -0.5, -0.5), _CODE_RADIUS_PX, _CODE_RADIUS_PX)
        painter.fillPath(shape, color("code"))
        painter.strokePath(shape, QPen(color("hair"), 1))
        line = QRectF(self.left + 1, self.top + px(CODE_HEADER_PX), self.frame.width() - 2, 1)
        painter.fillRect(line, color("hair"))
        painter.setFont(enlarged_ui_font(11.5))
        painter.setPen(color("text2"))
        header = QRectF(
            self.left + _CODE_PAD_LEFT_PX, self.top + 1, self.frame.width() / 2, px(CODE_HEADER_PX) - 1
        )
        painter.drawText(
            header,
            Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
            self.piece.language[:_LABEL_CHARACTERS],
        )

    def _paint_grid(self, painter: QPainter, table: TableLayout) -> None:
        for number, height in enumerate(table.rules):
            left = self.text_left + table.table_left
            line = QRectF(left, round(self.text_top + height), table.table_width, 1)
            painter.fillRect(line, color("hair" if number else "hair2"))

    def paint_scroll_bar(self, painter: QPainter) -> None:
        """How wide a table or formula is, and which part of it is seen."""
        if not self.most_scroll:
            return
        seen = self.right - self.left
        share = seen / (seen + self.most_scroll)
        left = self.left + self.scroll * share
        bar = QRectF(left, self.bottom - px(_SCROLL_BAR_PX), seen * share, px(_SCROLL_BAR_PX))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color("hair2"))
        painter.drawRoundedRect(bar, bar.height() / 2, bar.height() / 2)

    def _paint_inline_code(self, painter: QPainter, lines: range) -> None:
        first, last = self.layout.lines[lines[0]].start, self.layout.lines[lines[-1]].end
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color("fill1"))
        for styled in self.piece.styles:
            start, end = max(styled.start, first), min(styled.end, last)
            if styled.style != "code" or start >= end:
                continue
            for rect in self.layout.rects(start, end):
                rect.translate(self.text_left, self.text_top)
                painter.drawRoundedRect(rect.adjusted(-2, 2, 2, -2), 4, 4)


def _runs_from_the_right(piece: Piece) -> bool:
    return piece.kind != "code" and bool(is_rtl(without_code(piece.text, piece.styles)))


def _marker_font(zoom: float) -> QFont:
    return ui_font(enlarged(15, zoom), tabular=True)
