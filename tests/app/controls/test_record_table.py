"""RecordTable: keyboard, selection, editing and accessibility of every list of records."""

from __future__ import annotations

import pytest
from msgspec import Struct
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.controls.record_table import Column, RecordTable, first_row, paint_names


class Record(Struct, frozen=True):
    id: str
    title: str
    subtitle: str = ""
    size: str = "1 MB"
    tip: str = ""

    @property
    def spoken(self) -> str:
        return f"{self.title}, {self.size}"


COLUMNS = (
    Column("title", "Name", 200, grows=True, paint=paint_names),
    Column("size", "Size", 300, right=True),
)
THREE = [Record(each, each.upper()) for each in "abc"]


@pytest.fixture
def table(qtbot: QtBot) -> RecordTable[Record]:
    table = RecordTable[Record]("Records", COLUMNS, editable="Name")
    qtbot.addWidget(table)
    table.resize(400, 300)
    with qtbot.waitExposed(table):
        table.show()
    table.show_rows(THREE)
    return table


def test_a_selected_row_stays_and_a_removed_ones_neighbour_follows(table: RecordTable[Record]) -> None:
    told: list[str] = []
    table.row_selected.connect(told.append)
    assert table.selected == "a"
    table.select("b")
    table.show_rows([*THREE, Record("d", "D")])
    assert told == ["b"]
    table.show_rows([THREE[0], THREE[2]])
    assert table.selected == "c"
    table.show_rows([])
    assert table.selected == ""
    assert told == ["b", "c", ""]


def test_the_first_row_can_follow_instead(qtbot: QtBot) -> None:
    table = RecordTable[Record]("Records", COLUMNS, instead=first_row)
    qtbot.addWidget(table)
    table.show_rows(THREE)
    table.select("c")
    table.show_rows(THREE[:2])
    assert table.selected == "a"


def test_keys_move_open_remove_and_scroll(table: RecordTable[Record]) -> None:
    opened: list[str] = []
    removed: list[str] = []
    table.opened.connect(opened.append)
    table.remove_requested.connect(lambda: removed.append(table.selected))
    view = table.view
    QTest.keyClick(view, Qt.Key.Key_Down)
    QTest.keyClick(view, Qt.Key.Key_Return)
    QTest.keyClick(view, Qt.Key.Key_Delete)
    assert (table.selected, opened, removed) == ("b", ["b"], ["b"])
    bar = view.horizontalScrollBar()
    assert bar.maximum() > 0  # narrower than its columns
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert bar.value() > 0
    QTest.keyClick(view, Qt.Key.Key_Left)
    assert bar.value() == 0


def test_renaming_reports_the_text_and_return_ends_it(table: RecordTable[Record], qtbot: QtBot) -> None:
    renamed: list[tuple[str, str]] = []
    opened: list[str] = []
    table.renamed.connect(lambda *told: renamed.append(told))
    table.opened.connect(opened.append)
    table.rename()
    editor = table.view.findChild(QLineEdit)
    assert editor is not None
    assert (editor.text(), editor.accessibleName()) == ("A", "Name")
    editor.setText("First")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: renamed == [("a", "First")])
    assert opened == []


def test_assistive_technology_reads_whole_rows(table: RecordTable[Record]) -> None:
    index: QModelIndex = table.model.index_of("b")
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "B, 1 MB"
    assert table.view.accessibleName() == "Records"
