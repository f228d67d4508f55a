"""Measures follow the zoom: layouts, sizes and faces are the design's times it, and the design's at 1."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QTextEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.theme import measures
from app.theme.sheet import set_ground
from app.theme.theme import Theme
from app.theme.zoom import px, px_size


def widths(layout: QHBoxLayout) -> list[int]:
    return [layout.itemAt(index).sizeHint().width() for index in range(layout.count())]


def test_lengths_are_the_designs_times_the_zoom(theme: Theme) -> None:
    assert (px(7), px(7.0), px_size(QSize(7, 9))) == (7, 7.0, QSize(7, 9))
    theme.set_zoom(1.5)
    assert (px(28), px(7.0), px_size(QSize(7, 10))) == (42, 10.5, QSize(11, 15))


def test_layouts_take_their_measures_again_and_back(theme: Theme) -> None:
    widget = QWidget()
    column = QVBoxLayout(widget)
    row = QHBoxLayout()
    column.addLayout(row)
    measures.set_margins(column, 16, 0, 16, 14)
    measures.set_spacing(row, 8)
    button = QPushButton("a")
    measures.set_minimum_height(button, 24)
    row.addWidget(button)
    measures.add_gap(row, 10)
    row.addStretch(1)
    measures.add_gap(row, 4)

    def stand() -> tuple[object, ...]:
        margins = column.contentsMargins()
        gaps = [width for width in widths(row) if width in (10, 4, 15, 6)]
        return (margins.left(), margins.bottom(), row.spacing(), gaps, row.minimumSize().height() >= px(24))

    before = stand()
    assert before == (16, 14, 8, [10, 4], True)
    theme.set_zoom(1.5)
    assert stand() == (24, 21, 12, [15, 6], True)
    theme.set_zoom(1.0)
    assert stand() == before


def test_sizes_and_faces_follow_shown_or_not(theme: Theme) -> None:
    field = QLineEdit()
    measures.set_fixed_height(field, 28)
    measures.set_fixed_width(field, 200)
    measures.set_font(field, 12.5, 600)
    before = field.font()
    theme.set_zoom(2.0)
    assert field.size() == QSize(400, 56)
    assert field.font().pixelSize() == 25
    theme.set_zoom(1.0)
    assert field.size() == QSize(200, 28)
    assert field.font() == before


def test_a_font_outlives_the_style_sheet(theme: Theme) -> None:
    """Qt drops a widget's font when its rules are applied again."""
    for shown_first in (False, True):
        field = QLineEdit()
        if shown_first:
            field.ensurePolished()
        measures.set_mono_font(field, 11)
        set_ground(field, "panel")
        field.ensurePolished()
        set_ground(field, "window", "top")
        assert field.font().fixedPitch()
        theme.set_scheme("dark")
        theme.set_scheme("light")
        assert field.font().fixedPitch()


def test_what_scrolls_has_its_font_wherever_it_paints(theme: Theme, qtbot: QtBot) -> None:
    field = QTextEdit()
    qtbot.addWidget(field)
    measures.set_font(field, 14)
    field.show()
    for zoom, size_px in ((1.0, 14), (1.5, 21), (1.0, 14)):
        theme.set_zoom(zoom)
        assert (field.font().pixelSize(), field.viewport().font().pixelSize()) == (size_px, size_px)
