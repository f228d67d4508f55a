"""RowDelegate: paints a kept document's row, 46 high, in the columns of the header, and edits its name."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPalette, QPen
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.controls.focus_ring import RING_PX
from app.controls.row_model import ROW
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_font
from app.theme.theme import Theme
from app.theme.zoom import design_rect, px, px_rect, zoom
from app.windows.library import strings
from app.windows.library.rows import LibraryRow

ROW_PX = 46
INSET_PX = 8
PADDING_PX = 12
_ICON_PX = 14
_NAME_LEFT_PX = 24
_MOST_CHARACTERS = 200
_Index = QModelIndex | QPersistentModelIndex
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


def columns(row: QRectF) -> dict[str, QRectF]:
    """Where the columns of a row lie; the name takes what is left."""
    right, boxes = row.right() - INSET_PX - PADDING_PX, {}
    for name, width in (("used", 96), ("added", 96), ("tokens", 120)):
        right -= width
        boxes[name] = QRectF(right, row.top(), width, row.height())
    boxes["tokens"].adjust(0, 0, -24, 0)
    left = row.left() + INSET_PX + PADDING_PX + _NAME_LEFT_PX
    boxes["name"] = QRectF(left, row.top(), right - left - 8, row.height())
    return boxes


class RowDelegate(QStyledItemDelegate):
    """For a list of `RowModel`."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(0, px(ROW_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        row = index.data(ROW)
        assert isinstance(row, LibraryRow)
        painter.save()
        painter.scale(zoom(), zoom())
        self._paint_ground(painter, option)
        boxes = columns(design_rect(QRectF(option.rect)))
        text, text2 = self._theme.color("text"), self._theme.color("text2")
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
        painter.restore()

    def _paint_passage(self, painter: QPainter, box: QRectF, row: LibraryRow) -> None:
        font = ui_font(11, tabular=True)
        metrics = QFontMetricsF(font)
        for start, end in row.marks:
            left = box.left() + metrics.horizontalAdvance(row.passage[:start])
            width = metrics.horizontalAdvance(row.passage[start:end])
            if left + width <= box.right():
                mark = QRectF(left - 1, box.top(), width + 2, box.height())
                draw_box(painter, mark, 2, self._theme.color("accent_tint"))
        draw_text(painter, box, row.passage, font, self._theme.color("text2"), _LEFT)

    def _paint_ground(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        color = self._theme.color
        pill = design_rect(QRectF(option.rect)).adjusted(INSET_PX, 0, -INSET_PX, 0)
        state = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if not selected:
            line = QRectF(pill.left() + PADDING_PX, pill.bottom() - 1, pill.width() - 2 * PADDING_PX, 1)
            painter.fillRect(line, color("hair"))
        if selected or state & QStyle.StateFlag.State_MouseOver:
            fill = color("sel")
            fill.setAlphaF(1.0 if selected else 0.45)
            draw_box(painter, pill, 8, fill)
        if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
            half = RING_PX / 2
            painter.setPen(QPen(color("focus"), RING_PX))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.drawRoundedRect(pill.adjusted(half, half, -half, -half), 8 - half, 8 - half)

    # ---- editing in place

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        editor = QLineEdit(parent)
        set_font(editor, 13, 500)
        editor.setFrame(False)
        editor.setMaxLength(_MOST_CHARACTERS)
        editor.setAccessibleName(strings.NAME)
        palette = editor.palette()
        palette.setColor(QPalette.ColorRole.Base, self._theme.color("raised"))
        palette.setColor(QPalette.ColorRole.Text, self._theme.color("text"))
        editor.setPalette(palette)
        editor.setAutoFillBackground(True)
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        name = columns(design_rect(QRectF(option.rect)))["name"]
        editor.setGeometry(px_rect(QRectF(name.left() - 2, name.top() + 4, name.width(), 24)).toRect())
