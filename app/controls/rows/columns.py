"""Columns: what a list shows of each row, and where: the same for its header and its rows."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from PySide6.QtCore import QRectF

from app.controls.rows.row_ground import INSET_PX, PADDING_PX


class Column(Struct, frozen=True):
    """`width_px` is what it needs in design pixels, with the room kept free `before_px` and `after_px` in it.

    One that `grows` takes what the others leave.
    """

    name: str
    title: str
    width_px: int
    right: bool = False
    before_px: int = 0
    after_px: int = 0
    grows: bool = False


def least_width(columns: Sequence[Column]) -> int:
    """Of a row with all of `columns`, in design pixels."""
    return 2 * (INSET_PX + PADDING_PX) + sum(column.width_px for column in columns)


def place(row: QRectF, columns: Sequence[Column]) -> dict[str, QRectF]:
    """The box of each column by its name, at the row's height."""
    left, boxes = row.left() + INSET_PX + PADDING_PX, {}
    spare = max(0.0, row.width() - least_width(columns))
    for column in columns:
        width = column.width_px + (spare if column.grows else 0.0)
        box = QRectF(left, row.top(), width, row.height())
        boxes[column.name] = box.adjusted(column.before_px, 0, -column.after_px, 0)
        left += width
    return boxes
