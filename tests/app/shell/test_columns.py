"""What gives way when the window gets narrow."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget
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


def test_the_columns_stand_as_arranged_and_what_was_wanted_comes_back(qtbot: QtBot) -> None:
    sidebar, content, inspector = parts = QWidget(), QWidget(), QWidget()
    columns = WindowColumns(*parts)
    qtbot.addWidget(columns)
    columns.resize(1440, 900)
    columns.show()

    def seen() -> list[tuple[int, int] | None]:
        return [None if each.isHidden() else (each.x(), each.width()) for each in parts]

    assert seen() == [(0, 240), (240, 896), (1136, 304)]
    columns.set_panel_width(400)
    assert seen() == [(0, 240), (240, 800), (1040, 400)]
    columns.show_inspector(False)
    columns.set_panel_width(304)
    assert seen() == [(0, 240), (240, 1200), None]
    columns.show_inspector(True)
    columns.show_sidebar(False)
    assert seen() == [None, (0, 1136), (1136, 304)]
    # Over the content there is one at a time, and none after a resize.
    columns.resize(1000, 900)
    assert seen() == [None, (0, 1000), None]
    columns.show_inspector(True)
    assert seen() == [None, (0, 1000), (696, 304)]
    columns.show_sidebar(True)
    assert seen() == [(0, 240), (0, 1000), None]
    columns.resize(1010, 900)
    assert seen() == [None, (0, 1010), None]
    columns.resize(1440, 900)
    assert seen() == [None, (0, 1136), (1136, 304)]
    assert sidebar.height() == content.height() == inspector.height() == 900
