"""PieceBox: position of one piece, its text layout and its decoration.

Code has a frame with a header, quotes a rule, list items a marker, both at the side where the text starts.
A table, formula or code block that is wider than the column scrolls sideways. Measures are from the left edge
of the reading column and the top of the canvas.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QLinearGradient, QPainter, QPainterPath, QPen

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
_CODE_PAD_PX = 14  # at the left and right
_CONTINUED_MARK = "\u21a9"
_CODE_PAD_TOP_PX = 9
_CODE_PAD_BOTTOM_PX = 12
_CODE_RADIUS_PX = 9
_LABEL_CHARACTERS = 60
_DRAG_EDGE_PX = 14
_FASTEST_PX = 60
_LIST_INDENT_PX = 24
_MARKER_GAP_PX = 6
_MARKER_HANG_PX = 6
_QUOTE_INDENT_PX = 16
_RULE_HEIGHT_PX = 9
THOUGHT_HEAD_PX = 20
IMAGE_PX = 112
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
        link = color("accent")
        style, room = style or style_of(piece, zoom), max(40.0, self.right - self.left - 2 * self._pad)
        self._room = room
        self.layout: PieceLayout
        if piece.kind == "table" and not hidden:
            self.layout = TableLayout(piece, style, room, link)
        else:
            text, direction = "" if hidden else piece.text, False if self.is_code else None
            self.layout = PieceLayout(
                text, style, room, piece.styles, link, direction, wraps=not self.is_code
            )
        # How far content wider than the column is scrolled to the right.
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
    def _pad(self) -> float:
        """The distance of the text from the left and right."""
        return _CODE_PAD_PX if self.is_code else 0

    @property
    def text_left(self) -> float:
        return self.left + self._pad - self.scroll

    @property
    def most_scroll(self) -> float:
        """How far it can be scrolled to the right; 0 if it fits."""
        return max(0.0, self.layout.full_width - self._room)

    @property
    def window(self) -> QRectF:
        """The visible area of text that scrolls; empty for other boxes."""
        if not self.most_scroll:
            return QRectF()
        area = QRectF(self.left, self.top, self.right - self.left, self.height)
        # Code is inside its frame, and some glyphs reach out of their line.
        return area.adjusted(1, self.text_top - self.top - _CODE_PAD_TOP_PX, -1, -1) if self.is_code else area

    def scroll_by(self, pixels: float) -> bool:
        """Scroll content wider than the column to the right. Returns whether it moved."""
        before = self.scroll
        self.scroll = min(max(0.0, before + pixels), self.most_scroll)
        return self.scroll != before

    def scroll_to(self, left: float, right: float) -> None:
        """Scroll so that the horizontal range [left, right] is visible."""
        first, last = self.left + self._pad, self.right - self._pad
        if left < first:
            self.scroll_by(left - first)
        elif right > last:
            self.scroll_by(min(right - last, left - first))

    def drag_step(self, x: float) -> float:
        """How far to the right a selecting mouse at `x` scrolls at once: more, the further out it is."""
        first, last = self.left + _DRAG_EDGE_PX, self.right - _DRAG_EDGE_PX
        return max(-_FASTEST_PX, min(_FASTEST_PX, min(x - first, 0) + max(x - last, 0)))

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
        if self.piece.kind == "images":
            return px(IMAGE_PX)
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
        """Move down: the pieces above have become higher."""
        self.top += distance_px
        self.rule_top += distance_px

    def lines_in(self, clip: QRectF) -> range:
        """The numbers of the lines that touch `clip`."""
        if self.piece.kind in ("rule", "thought", "images"):
            return range(0)
        return self.layout.lines_between(clip.top() - self.text_top, clip.bottom() - self.text_top)

    def paint_around(self, painter: QPainter) -> None:
        """Paint what does not scroll: the frame, rules and marker."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for level in range(self.piece.quotes):
            distance = (self.piece.quotes - level) * _QUOTE_INDENT_PX * self._zoom
            x = self.right + distance - 2 if self.rtl else self.left - distance
            painter.fillRect(QRectF(x, self.rule_top, 2, self.bottom - self.rule_top), color("hair2"))
        if self.piece.thought >= 0 and self.piece.kind != "thought":
            rule = QRectF(_THOUGHT_RULE_PX, self.rule_top, 2, self.bottom - self.rule_top)
            painter.fillRect(rule, color("hair2"))
        if self.piece.kind == "rule":
            y = round(self.top + px(_RULE_HEIGHT_PX) / 2)
            painter.fillRect(QRectF(self.left, y, self.right - self.left, 1), color("hair"))
        if self.is_code:
            self._paint_frame(painter)
        self._paint_marker(painter)

    def paint_behind(self, painter: QPainter, lines: range) -> None:
        """Paint what scrolls with the text of `lines` and is behind its tints."""
        if isinstance(self.layout, TableLayout):
            self._paint_grid(painter, self.layout)
        if lines and not self.is_code:
            self._paint_inline_code(painter, lines)
        elif lines:
            self._paint_continued(painter, lines)

    def _paint_marker(self, painter: QPainter) -> None:
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
            self.left + _CODE_PAD_PX, self.top + 1, self.frame.width() / 2, px(CODE_HEADER_PX) - 1
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
        """Paint how wide the text is and which part of it is visible; code also fades at the edges."""
        if not self.most_scroll:
            return
        if self.is_code:
            self._paint_fades(painter)
        seen = self.right - self.left - 2 * self._pad
        share = seen / (seen + self.most_scroll)
        left = self.left + self._pad + self.scroll * share
        bottom = self.bottom - ((_CODE_PAD_BOTTOM_PX - px(_SCROLL_BAR_PX)) / 2 if self.is_code else 0)
        bar = QRectF(left, bottom - px(_SCROLL_BAR_PX), seen * share, px(_SCROLL_BAR_PX))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color("hair2"))
        painter.drawRoundedRect(bar, bar.height() / 2, bar.height() / 2)

    def _paint_fades(self, painter: QPainter) -> None:
        """Fade the text out at an edge where more of it follows. Without more, no line reaches the edge, so
        when a line grows, those above need not be painted again."""
        area, clear = self.window, QColor(color("code"))
        clear.setAlpha(0)
        for edge, inner, more in (
            (area.left(), area.left() + _CODE_PAD_PX - 1, self.scroll > 0),
            (area.right(), area.right() - _CODE_PAD_PX + 1, self.scroll < self.most_scroll),
        ):
            fade = QLinearGradient(edge, 0, inner, 0)
            fade.setColorAt(0, color("code"))
            fade.setColorAt(1, clear)
            if more:
                left = min(edge, inner)
                part = QRectF(left, self.text_top, abs(edge - inner), self.layout.height)
                painter.fillRect(part, fade)

    def _paint_continued(self, painter: QPainter, lines: range) -> None:
        """Mark the ends of lines that continue on the next line."""
        for number in filter(self.layout.continues, lines):
            line = self.layout.lines[number]
            painter.setFont(self.layout.style.font)
            painter.setPen(color("text2"))
            at = QPointF(self.text_left + line.right, self.text_top + line.baseline)
            painter.drawText(at, _CONTINUED_MARK)

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
