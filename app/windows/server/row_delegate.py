"""RequestRowDelegate: paints a request's row."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from app.controls.rows.columns import Column
from app.controls.rows.row_delegate import ROW_PX, RowDelegate
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.windows.server import strings
from app.windows.server.rows import Level, RequestRow

COLUMNS = (
    Column("client", strings.CLIENT, 212, after_px=12, grows=True),
    Column("state", strings.STATE, 132),
    Column("tokens", strings.TOKENS, 72, right=True),
    Column("speed", strings.SPEED, 78, right=True),
    Column("accepted", strings.ACCEPTED, 84, right=True),
    Column("cached", strings.CACHED, 128, right=True),
    Column("first_token", strings.FIRST_TOKEN, 84, right=True),
    Column("came", strings.CAME, 96, right=True),
)
_LINES_PX = (18, 14)
_INKS: dict[Level, str] = {"live": "accent", "plain": "text2", "bad": "danger"}


class RequestRowDelegate(RowDelegate[RequestRow]):
    """For a list of requests."""

    columns = COLUMNS

    def paint_row(
        self,
        painter: QPainter,
        boxes: dict[str, QRectF],
        row: RequestRow,
        option: QStyleOptionViewItem,
        number: int,
    ) -> None:
        color, left = self.theme.color, Qt.AlignmentFlag.AlignLeft
        box = boxes["client"]
        top = box.top() + (ROW_PX - sum(_LINES_PX)) / 2
        for text, font, ink, y, height in (
            (row.title, ui_font(13, 500), "text", top, _LINES_PX[0]),
            (row.subtitle, ui_font(11), "text2", top + _LINES_PX[0], _LINES_PX[1]),
        ):
            cut = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, box.width())
            draw_text(painter, QRectF(box.left(), y, box.width(), height), cut, font, color(ink), left)
        draw_text(painter, boxes["state"], row.state, ui_font(13), color(_INKS[row.level]), left)
        figures = ui_font(13, tabular=True)
        for name in (column.name for column in COLUMNS if column.right):
            ink = "text2" if name == "came" else "text"
            figure, right = getattr(row, name), Qt.AlignmentFlag.AlignRight
            draw_text(painter, boxes[name], figure, figures, color(ink), right)
