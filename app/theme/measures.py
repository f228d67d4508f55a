"""Measures: the design lengths of layouts and widgets, applied again when the zoom changes.

Each function takes design pixels, sets the length in screen pixels, and stores the design length in a
dynamic property of the layout or widget, so that it lives as long as that. `measure_anew()` applies all.
"""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import QObject, QSize
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QApplication,
    QBoxLayout,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.theme.fonts import enlarged_mono_font, enlarged_ui_font
from app.theme.zoom import px, px_size

# A widget or layout, alone or with its share of the spare space; a gap; or a stretch.
Part = QWidget | QLayout | tuple[QWidget | QLayout, int] | int | None
STRETCH: Final = None

_NOTED = "designMeasures"
# no limit, at any zoom
ANY_PX = 100_000


def set_margins(of: QLayout | QWidget, left: int, top: int, right: int, bottom: int) -> None:
    _note(of, margins=(left, top, right, bottom))


def set_spacing(layout: QBoxLayout | QGridLayout, spacing: int) -> None:
    _note(layout, spacing=(spacing,))


def set_grid_spacing(grid: QGridLayout, across: int, down: int) -> None:
    _note(grid, grid_spacing=(across, down))


def add_gap(layout: QBoxLayout, length: int) -> None:
    """Adds a gap at the end of `layout`."""
    layout.addSpacing(px(length))
    noted = dict(layout.property(_NOTED) or {})
    noted["gaps"] = [*noted.get("gaps", ()), length]
    layout.setProperty(_NOTED, noted)


def row_of(
    *parts: Part,
    gap: int = 0,
    margins: tuple[int, int, int, int] = (0, 0, 0, 0),
    parent: QWidget | None = None,
) -> QHBoxLayout:
    """Returns a row of `parts`, `gap` apart; it is the layout of `parent`, if given."""
    row = QHBoxLayout(parent) if parent else QHBoxLayout()
    _fill(row, parts, gap, margins)
    return row


def column_of(
    *parts: Part,
    gap: int = 0,
    margins: tuple[int, int, int, int] = (0, 0, 0, 0),
    parent: QWidget | None = None,
) -> QVBoxLayout:
    """Returns a column of `parts`, `gap` apart; it is the layout of `parent`, if given."""
    column = QVBoxLayout(parent) if parent else QVBoxLayout()
    _fill(column, parts, gap, margins)
    return column


def _fill(layout: QBoxLayout, parts: tuple[Part, ...], gap: int, margins: tuple[int, int, int, int]) -> None:
    set_margins(layout, *margins)
    set_spacing(layout, gap)
    for part in parts:
        if part is None:
            layout.addStretch(1)
        elif isinstance(part, int):
            add_gap(layout, part)
        else:
            item, share = part if isinstance(part, tuple) else (part, 0)
            if isinstance(item, QLayout):
                layout.addLayout(item, share)
            else:
                layout.addWidget(item, share)


def set_fixed_width(widget: QWidget, width: int) -> None:
    _note(widget, fixed_width=(width,))


def set_fixed_height(widget: QWidget, height: int) -> None:
    _note(widget, fixed_height=(height,))


def set_fixed_size(widget: QWidget, size: QSize) -> None:
    _note(widget, fixed_width=(size.width(),), fixed_height=(size.height(),))


def set_minimum_width(widget: QWidget, width: int) -> None:
    _note(widget, minimum_width=(width,))


def set_minimum_height(widget: QWidget, height: int) -> None:
    _note(widget, minimum_height=(height,))


def set_maximum_width(widget: QWidget, width: int) -> None:
    _note(widget, maximum_width=(width,))


def set_font(widget: QWidget, size_px: float, weight: int = 400, *, tabular: bool = False) -> None:
    """Sets the text font of a widget whose text Qt paints."""
    _note(widget, font=(size_px, weight, int(tabular)))


def set_mono_font(widget: QWidget, size_px: float) -> None:
    """Sets the code font of a widget whose text Qt paints."""
    _note(widget, mono=(size_px,))


def start_at(window: QWidget, size: QSize) -> None:
    """Resizes a window to the design size at this zoom, limited by the screen."""
    screen = window.screen().availableSize() if window.screen() else px_size(size)
    window.resize(px_size(size).boundedTo(screen))


def lay_beside(layout: QBoxLayout, beside: bool) -> None:
    """Lays the parts out side by side, or below one another."""
    way = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
    if way == layout.direction():
        return
    layout.setDirection(way)
    # the layouts around it have cached its old size
    around = layout.parent()
    while isinstance(around, QLayout):
        around.invalidate()
        around = around.parent()


def measure(widget: QWidget) -> None:
    """Applies the measures of one widget again."""
    if noted := widget.property(_NOTED):
        _apply(widget, noted)


def measure_anew() -> None:
    """Applies all measures again after a change of the zoom, hidden widgets included."""
    widgets = QApplication.allWidgets()
    for widget in widgets:
        measure(widget)
        if widget.parent() is None:
            for layout in widget.findChildren(QLayout):
                if noted := layout.property(_NOTED):
                    _apply(layout, noted)
    for widget in widgets:
        widget.updateGeometry()
        widget.update()
        if isinstance(widget, QAbstractItemView):
            widget.scheduleDelayedItemsLayout()


def _note(of: QObject, **measures: tuple[float, ...]) -> None:
    noted = dict(of.property(_NOTED) or {})
    noted |= {name: list(values) for name, values in measures.items()}
    of.setProperty(_NOTED, noted)
    _apply(of, {name: list(values) for name, values in measures.items()})


def _apply(of: Any, noted: dict[str, list[float]]) -> None:
    for name, values in noted.items():
        if name == "gaps":
            _apply_gaps(of, values)
        elif name in ("font", "mono"):
            font = (
                enlarged_mono_font(values[0])
                if name == "mono"
                else enlarged_ui_font(values[0], int(values[1]), tabular=bool(values[2]))
            )
            of.setFont(font)
            if isinstance(of, QAbstractScrollArea):
                of.viewport().setFont(font)  # paints the placeholder; the style sheet keeps its old font
        else:
            _SETTERS[name](of, *(px(int(value)) for value in values))


_SETTERS: dict[str, Any] = {
    "margins": lambda of, *lengths: of.setContentsMargins(*lengths),
    "spacing": lambda layout, length: layout.setSpacing(length),
    "grid_spacing": lambda grid, across, down: (
        grid.setHorizontalSpacing(across),
        grid.setVerticalSpacing(down),
    ),
    "fixed_width": lambda widget, length: widget.setFixedWidth(length),
    "fixed_height": lambda widget, length: widget.setFixedHeight(length),
    "minimum_height": lambda widget, length: widget.setMinimumHeight(length),
    "minimum_width": lambda widget, length: widget.setMinimumWidth(length),
    "maximum_width": lambda widget, length: widget.setMaximumWidth(length),
}


def _apply_gaps(layout: QBoxLayout, lengths: list[float]) -> None:
    """Applies the gaps: the spacers that do not stretch, in order."""
    fixed, least = QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Minimum
    across = layout.direction() in (QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.RightToLeft)
    left = list(lengths)
    for index in range(layout.count()):
        item = layout.itemAt(index)
        spacer = item.spacerItem() if item is not None else None
        if spacer is None:
            continue
        policy, size = spacer.sizePolicy(), spacer.sizeHint()
        along = policy.horizontalPolicy() if across else policy.verticalPolicy()
        if along != fixed or (size.height() if across else size.width()) or not left:
            continue
        length_px = px(int(left.pop(0)))
        if across:
            spacer.changeSize(length_px, 0, fixed, least)
        else:
            spacer.changeSize(0, length_px, least, fixed)
    layout.invalidate()
