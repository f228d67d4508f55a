"""The Tables window by itself: what is painted, chosen by key and mouse, and said to assistive technology."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.features.tables import strings
from app.features.tables.state import Tables
from app.features.tables.window import SIZE, TablesWindow
from tests.app.features.test_tables import LOADED, MODEL, ON_DISK, SHIPPED

KNOWN = Tables("/tables", (LOADED, ON_DISK), (SHIPPED,), listed=True, stale=False, model=MODEL)


@pytest.fixture
def window(qtbot: QtBot) -> TablesWindow:
    tables = TablesWindow()
    qtbot.addWidget(tables)
    with qtbot.waitExposed(tables):
        tables.show()
    return tables


def test_it_says_so_while_there_is_nothing(window: TablesWindow) -> None:
    assert window.size() == SIZE
    assert window.selected is None
    window.show_tables(Tables(listed=True), alive=True)
    assert window.sum.text() == "0 tables, nothing on disk"
    assert window.list.empty == (strings.NONE_YET, strings.NONE_YET_HINT)
    assert window.import_.isEnabled()
    assert not window.export.isEnabled()


def test_notices_come_and_go(window: TablesWindow) -> None:
    held = replace(LOADED, why_not_saved="another Draftlight is using these tables and saves them")
    aside = ("a.safetensors.refused-1", "b.safetensors is damaged.")
    window.show_tables(replace(KNOWN, tables=(held,), set_aside=aside), alive=True)
    assert window.read_only.text == strings.read_only("Qwen3", held.why_not_saved)
    assert "2 files could not be used" in window.set_aside.text
    assert "b.safetensors is damaged." in window.set_aside.label.toolTip()
    window.show_tables(KNOWN, alive=True)
    assert not window.read_only.isVisible()
    assert not window.set_aside.isVisible()


def test_a_question_changes_nothing_by_return_or_escape(qtbot: QtBot, window: TablesWindow) -> None:
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape):
        heard: list[str] = []
        question = window.open_question("Reset?", "All of it.", "Cancel", [("reset", "Reset", "danger")])
        question.chosen.connect(heard.append)
        qtbot.waitUntil(question.isVisible)
        QTest.keyClick(question.focusWidget() or question, key)
        qtbot.waitUntil(lambda question=question: not isValid(question) or question.isHidden())
        assert heard == []
    question = window.open_question("Reset?", "All of it.", "Cancel", [("reset", "Reset", "danger")])
    question.chosen.connect(heard.append)
    QTest.mouseClick(question.answers["reset"], Qt.MouseButton.LeftButton)
    assert heard == ["reset"]
