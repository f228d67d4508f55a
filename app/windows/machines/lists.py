"""MachineList and ModelList: the machines, and the models that may run over them, one of each chosen."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from app.controls.rows.columns import Column
from app.controls.rows.row_delegate import ROW_PX, RowDelegate
from app.controls.rows.row_list import RowList, RowView
from app.controls.rows.row_model import RowModel
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.windows.machines import strings
from app.windows.machines.rows import Level, MachineRow, ModelRow

MACHINE_COLUMNS = (
    Column("machine", strings.MACHINE_COLUMN, 150, after_px=12, grows=True),
    Column("state", strings.STATE, 96, after_px=12),
    Column("chip", strings.CHIP, 140, after_px=12),
    Column("memory", strings.MEMORY, 116, right=True),
    Column("holds", strings.HOLDS, 82, right=True),
    Column("step", strings.STEP, 68, right=True),
    Column("version", strings.VERSION, 68, right=True),
)
MODEL_COLUMNS = (
    Column("model", strings.MODEL, 232, after_px=12, grows=True),
    Column("needs", strings.NEEDS, 90, right=True),
    Column("each", strings.EACH, 90, right=True),
    Column("fit", strings.FIT, 210, before_px=16),
)
_LINES_PX = (18, 14)
_DOT_PX = 8
_INKS: dict[Level, str] = {"live": "text", "plain": "text", "bad": "danger", "dim": "text2"}
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


class MachineRowDelegate(RowDelegate[MachineRow]):
    """For the list of machines."""

    columns = MACHINE_COLUMNS

    def paint_row(
        self,
        painter: QPainter,
        boxes: dict[str, QRectF],
        row: MachineRow,
        option: QStyleOptionViewItem,
        number: int,
    ) -> None:
        color = self.theme.color
        _two_lines(painter, self.theme, boxes["machine"], row.title, row.subtitle)
        draw_text(painter, boxes["chip"], row.chip, ui_font(13), color("text2"), _LEFT)
        figures = ui_font(13, tabular=True)
        for name in ("memory", "holds", "step", "version"):
            draw_text(painter, boxes[name], getattr(row, name), figures, color("text"), _RIGHT)
        state = boxes["state"]
        if row.level == "live":
            # A dot as the models' loaded one has: blue words on the chosen row would be too pale.
            dot = QRectF(state.left(), state.center().y() - _DOT_PX / 2, _DOT_PX, _DOT_PX)
            draw_box(painter, dot, _DOT_PX / 2, color("series_blue"))
            state = state.adjusted(_DOT_PX + 6, 0, 0, 0)
        draw_text(painter, state, row.state, ui_font(13), color(_ink(row.level, option)), _LEFT)


class ModelRowDelegate(RowDelegate[ModelRow]):
    """For the list of models."""

    columns = MODEL_COLUMNS

    def paint_row(
        self,
        painter: QPainter,
        boxes: dict[str, QRectF],
        row: ModelRow,
        option: QStyleOptionViewItem,
        number: int,
    ) -> None:
        _two_lines(painter, self.theme, boxes["model"], row.title, row.subtitle)
        figures, color = ui_font(13, tabular=True), self.theme.color
        for name in ("needs", "each"):
            draw_text(painter, boxes[name], getattr(row, name), figures, color("text"), _RIGHT)
        draw_text(painter, boxes["fit"], row.fit, ui_font(13), color(_ink(row.level, option)), _LEFT)


class MachineList(RowList[MachineRow]):
    """This machine first. Delete is told."""

    remove_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        model = RowModel[MachineRow]()
        view = _MachineView(theme, strings.MACHINES, model, MachineRowDelegate)
        super().__init__(theme, model, view, MACHINE_COLUMNS)
        view.remove_requested.connect(self.remove_requested)


class ModelList(RowList[ModelRow]):
    """As the models' window has them."""

    def __init__(self, theme: Theme) -> None:
        model = RowModel[ModelRow]()
        super().__init__(theme, model, RowView(theme, strings.MODELS, model, ModelRowDelegate), MODEL_COLUMNS)


class _MachineView(RowView):
    remove_requested = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.remove_requested.emit()
            event.accept()
        else:
            super().keyPressEvent(event)


def _ink(level: Level, option: QStyleOptionViewItem) -> str:
    """On the chosen row red would be too pale; what is wrong stands in red beside the list, too."""
    chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    return "text" if level == "bad" and chosen else _INKS[level]


def _two_lines(painter: QPainter, theme: Theme, box: QRectF, title: str, subtitle: str) -> None:
    """One line stands in the middle."""
    lines = [(title, ui_font(13, 500), "text", _LINES_PX[0])]
    if subtitle:
        lines.append((subtitle, ui_font(11), "text2", _LINES_PX[1]))
    top = box.top() + (ROW_PX - sum(height for *_, height in lines)) / 2
    for text, font, ink, height in lines:
        draw_text(painter, QRectF(box.left(), top, box.width(), height), text, font, theme.color(ink), _LEFT)
        top += height
