"""RequestRowDelegate: paints a request's row."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from app.controls.rows.columns import Column
from app.controls.rows.row_delegate import RowDelegate
from app.controls.rows.row_words import draw_names, draw_state
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.windows.server import strings
from app.windows.server.rows import RequestRow

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
        color = self.theme.color
        draw_names(painter, self.theme, boxes["client"], row.title, row.subtitle)
        draw_state(painter, self.theme, boxes["state"], row.state, row.level, option)
        figures = ui_font(13, tabular=True)
        for name in (column.name for column in COLUMNS if column.right):
            ink = "text2" if name == "came" else "text"
            figure, right = getattr(row, name), Qt.AlignmentFlag.AlignRight
            draw_text(painter, boxes[name], figure, figures, color(ink), right)
