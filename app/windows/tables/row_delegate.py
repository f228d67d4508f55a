"""TableRowDelegate: paints a table's row."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from app.controls.rows.columns import Column
from app.controls.rows.row_delegate import ROW_PX, RowDelegate
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.windows.tables import strings
from app.windows.tables.rows import TableRow

COLUMNS = (
    Column("family", strings.FAMILY, 168, before_px=18, after_px=8),
    Column("entries", strings.ENTRIES_USED, 262),
    Column("hits", strings.HITS, 92, right=True),
    Column("accepted", strings.ACCEPTED, 92, right=True),
    Column("size", strings.ON_DISK_COLUMN, 92, right=True),
    Column("saved", strings.SAVED, 112, before_px=24),
    Column("learned", strings.LEARNED_FROM, 290, grows=True),
)
_BAR_PX = 200
_BAR_HEIGHT_PX = 4
_SWATCH_PX = 9
# The first tables' colours; green, amber and vermilion mean other things.
_SWATCHES = ("series_blue", "series_purple", "series_grey", "series_sky", "text", "normal_mark")
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


class TableRowDelegate(RowDelegate[TableRow]):
    """For a list of tables."""

    columns = COLUMNS

    def paint_row(
        self,
        painter: QPainter,
        boxes: dict[str, QRectF],
        row: TableRow,
        option: QStyleOptionViewItem,
        number: int,
    ) -> None:
        self._paint_family(painter, boxes["family"], row, number)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        self._paint_entries(painter, boxes["entries"], row, "hair2" if selected else "fill2")
        text, text2 = self.theme.color("text"), self.theme.color("text2")
        figures = ui_font(13, tabular=True)
        for name, value in (("hits", row.hits), ("accepted", row.accepted), ("size", row.size)):
            draw_text(painter, boxes[name], value, figures, text, _RIGHT)
        draw_text(painter, boxes["saved"], row.saved, ui_font(13, tabular=True), text2, _LEFT)
        draw_text(painter, boxes["learned"], row.learned_from, ui_font(13), text2, _LEFT)

    def _paint_family(self, painter: QPainter, box: QRectF, row: TableRow, place: int) -> None:
        swatch = QRectF(box.left() - 18, box.center().y() - _SWATCH_PX / 2, _SWATCH_PX, _SWATCH_PX)
        ink: QColor | None = self.theme.color(_SWATCHES[place % len(_SWATCHES)])
        if row.share is None:  # chats do not fill it
            draw_box(painter, swatch, 2, None, ink)
        else:
            draw_box(painter, swatch, 2, ink)
        first, second = _lines(box)
        draw_text(painter, first, row.title, ui_font(13, 500), self.theme.color("text"), _LEFT)
        font = ui_font(11, tabular=True)
        draw_text(painter, second, row.subtitle, font, self.theme.color("text2"), _LEFT)

    def _paint_entries(self, painter: QPainter, box: QRectF, row: TableRow, track: str) -> None:
        color = self.theme.color
        font = ui_font(12, 500, tabular=True)
        if row.share is None:
            draw_text(painter, box, row.entries, ui_font(12, tabular=True), color("text2"), _LEFT)
            return
        first, second = _lines(box)
        draw_text(painter, first, row.entries, font, color("text"), _LEFT)
        first.setLeft(first.left() + QFontMetricsF(font).horizontalAdvance(row.entries))
        draw_text(painter, first, row.of_entries, ui_font(12, tabular=True), color("text2"), _LEFT)
        bar = QRectF(box.left(), second.center().y() - 1, _BAR_PX, _BAR_HEIGHT_PX)
        draw_box(painter, bar, 2, color(track))
        filled = min(1.0, row.share) * _BAR_PX
        if filled > 0:
            # A first sliver is at least as wide as the bar's ends are round.
            used = QRectF(bar.left(), bar.top(), max(filled, 2.0), _BAR_HEIGHT_PX)
            draw_box(painter, used, min(2.0, used.width() / 2), color("series_blue"))
        painter.fillRect(QRectF(bar.left() + _BAR_PX / 2, bar.top() - 2, 1, 8), color("text3"))


def _lines(box: QRectF) -> tuple[QRectF, QRectF]:
    """The two lines of a row: 18 and 14 high."""
    top = box.top() + (ROW_PX - 32) / 2
    return QRectF(box.left(), top, box.width(), 18), QRectF(box.left(), top + 18, box.width(), 14)
