"""MachineList and ModelList: the machines, and the models that may run over them, one of each chosen."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from app.controls.rows.columns import Column
from app.controls.rows.row_delegate import RowDelegate
from app.controls.rows.row_list import RowList, RowView
from app.controls.rows.row_model import RowModel
from app.controls.rows.row_words import draw_names, draw_state
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.windows.machines import strings
from app.windows.machines.rows import MachineRow, ModelRow

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
        draw_names(painter, self.theme, boxes["machine"], row.title, row.subtitle)
        draw_text(painter, boxes["chip"], row.chip, ui_font(13), color("text2"), _LEFT)
        figures = ui_font(13, tabular=True)
        for name in ("memory", "holds", "step", "version"):
            draw_text(painter, boxes[name], getattr(row, name), figures, color("text"), _RIGHT)
        draw_state(painter, self.theme, boxes["state"], row.state, row.level, option)


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
        draw_names(painter, self.theme, boxes["model"], row.title, row.subtitle)
        figures, color = ui_font(13, tabular=True), self.theme.color
        for name in ("needs", "each"):
            draw_text(painter, boxes[name], getattr(row, name), figures, color("text"), _RIGHT)
        draw_state(painter, self.theme, boxes["fit"], row.fit, row.level, option)


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
