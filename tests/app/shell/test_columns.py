"""What gives way when the window gets narrow."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.shell.columns import Arrangement, Wants, WindowColumns, arrange


@pytest.mark.parametrize(
    ("width_px", "wants", "expected"),
    [
        (1440, Wants(), Arrangement(240, 240, 896, 304, False, False)),
        (1440, Wants(inspector=False), Arrangement(240, 240, 1200, 0, False, False)),
        (1440, Wants(sidebar=False), Arrangement(0, 0, 1136, 304, False, False)),
        (1180, Wants(), Arrangement(240, 240, 636, 304, False, False)),
        (1179, Wants(), Arrangement(240, 240, 939, 0, False, False)),
        (1179, Wants(inspector_over=True), Arrangement(240, 240, 939, 304, False, True)),
        (1060, Wants(), Arrangement(240, 240, 820, 0, False, False)),
        (1059, Wants(), Arrangement(0, 0, 1059, 0, False, False)),
        (1059, Wants(sidebar_over=True), Arrangement(240, 0, 1059, 0, True, False)),
        (980, Wants(inspector_over=True), Arrangement(0, 0, 980, 304, False, True)),
    ],
)
def test_arrange(width_px: int, wants: Wants, expected: Arrangement) -> None:
    assert arrange(width_px, wants) == expected


@pytest.fixture
def columns(qtbot: QtBot) -> WindowColumns:
    widget = WindowColumns(QWidget(), QWidget(), QWidget())
    qtbot.addWidget(widget)
    widget.resize(1440, 900)
    widget.show()
    return widget


def test_wide(columns: WindowColumns) -> None:
    assert columns._sidebar.geometry().getRect() == (0, 0, 240, 900)
    assert columns._content.geometry().getRect() == (240, 0, 896, 900)
    assert columns._inspector.geometry().getRect() == (1136, 0, 304, 900)


def test_a_panel_may_want_to_be_wider(columns: WindowColumns) -> None:
    columns.set_panel_width(400)
    assert columns._content.width() == 1440 - 240 - 400
    assert columns._inspector.geometry().getRect() == (1040, 0, 400, 900)
    columns.show_inspector(False)
    columns.set_panel_width(304)
    assert columns._content.width() == 1440 - 240
    columns.show_inspector(True)
    assert columns.arrangement.inspector_px == 304


def test_what_was_wanted_comes_back_when_there_is_room(columns: WindowColumns) -> None:
    columns.show_sidebar(False)
    columns.resize(1000, 900)
    assert columns._inspector.isHidden()
    columns.show_inspector(True)
    assert columns._inspector.isVisible()
    assert columns._content.width() == 1000
    columns.resize(1440, 900)
    assert columns._inspector.isVisible()
    assert columns._sidebar.isHidden()
    assert columns._content.width() == 1440 - 304


def test_over_the_content_only_one_at_a_time_and_not_after_a_resize(columns: WindowColumns) -> None:
    columns.resize(1000, 900)
    columns.show_inspector(True)
    columns.show_sidebar(True)
    assert columns._sidebar.isVisible()
    assert columns._inspector.isHidden()
    columns.resize(1010, 900)
    assert columns._sidebar.isHidden()
    columns.resize(1440, 900)
    assert columns._sidebar.isVisible()


def test_a_panel_over_the_content_goes_by_escape_and_by_a_click_beside_it(
    columns: WindowColumns, qtbot: QtBot
) -> None:
    columns.resize(1024, 700)
    field = QLineEdit(columns.findChildren(QWidget)[0])
    field.show()
    for leave in ("key", "click"):
        columns.show_inspector(True)
        assert columns.arrangement.inspector_over
        if leave == "key":
            field.setFocus()
            QTest.keyClick(field, Qt.Key.Key_Escape)
        else:
            QTest.mouseClick(columns.childAt(300, 400), Qt.MouseButton.LeftButton)
        assert columns.arrangement.inspector_px == 0
    # What stands beside the content is not touched by it.
    columns.resize(1440, 900)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert columns.arrangement.inspector_px > 0
