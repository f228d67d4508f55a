"""DocumentRowDelegate: paints a kept document's row and edits its name."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPalette, QTextCharFormat
from PySide6.QtWidgets import QLineEdit, QStyleOptionViewItem, QWidget

from app.controls.rows.columns import Column
from app.controls.rows.row_delegate import RowDelegate
from app.controls.rows.row_model import Index
from app.controls.shapes import draw_text
from app.richtext.layout.passage import draw_passage
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_font
from app.theme.zoom import px_rect, zoom
from app.windows.library import strings
from app.windows.library.rows import LibraryRow

_ICON_PX = 14
_NAME_LEFT_PX = 24
COLUMNS = (
    Column("name", strings.NAME, 220, before_px=_NAME_LEFT_PX, after_px=8, grows=True),
    Column("tokens", strings.TOKENS, 120, right=True, after_px=24),
    Column("added", strings.ADDED, 96),
    Column("used", strings.USED, 96),
)
_MOST_CHARACTERS = 200
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


class DocumentRowDelegate(RowDelegate[LibraryRow]):
    """For a list of documents."""

    columns = COLUMNS

    def paint_row(
        self,
        painter: QPainter,
        boxes: dict[str, QRectF],
        row: LibraryRow,
        option: QStyleOptionViewItem,
        number: int,
    ) -> None:
        text, text2 = self.theme.color("text"), self.theme.color("text2")
        name = boxes["name"]
        icon = icon_pixmap("doc", text2, _ICON_PX, painter.device().devicePixelRatioF() * zoom())
        painter.drawPixmap(round(name.left()) - _NAME_LEFT_PX, round(name.center().y()) - 7, icon)
        first = QRectF(name.left(), name.top() + 7, name.width(), 18)
        draw_text(painter, first, row.name, ui_font(13, 500), text, _LEFT)
        self._paint_passage(painter, QRectF(name.left(), first.bottom(), name.width(), 14), row)
        figures = ui_font(13, tabular=True)
        draw_text(painter, boxes["tokens"], row.tokens, figures, text, _RIGHT)
        draw_text(painter, boxes["added"], row.added, figures, text2, _LEFT)
        draw_text(painter, boxes["used"], row.used, figures, text2, _LEFT)

    def _paint_passage(self, painter: QPainter, box: QRectF, row: LibraryRow) -> None:
        marked = QTextCharFormat()
        marked.setBackground(self.theme.color("accent_tint"))
        font = ui_font(11, tabular=True)
        draw_passage(painter, box, row.passage, font, self.theme.color("text2"), row.marks, marked)

    # ---- editing in place

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        set_font(editor, 13, 500)
        editor.setFrame(False)
        editor.setMaxLength(_MOST_CHARACTERS)
        editor.setAccessibleName(strings.NAME)
        palette = editor.palette()
        palette.setColor(QPalette.ColorRole.Base, self.theme.color("raised"))
        palette.setColor(QPalette.ColorRole.Text, self.theme.color("text"))
        editor.setPalette(palette)
        editor.setAutoFillBackground(True)
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        name = self.boxes(option)["name"]
        editor.setGeometry(px_rect(QRectF(name.left() - 2, name.top() + 4, name.width(), 24)).toRect())
