"""RecordTable as a person meets it: by keys, by clicks, and read by a screen reader."""

from __future__ import annotations

import pytest
from msgspec import Struct
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.controls.record_table import Column, RecordTable, first_row
from app.controls.text_label import TextLabel
from app.theme.measures import column_of
from app.theme.theme import Theme


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
    Column("title", "Name", 200, grows=True, below="subtitle"),
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
    QTest.keyClick(table, Qt.Key.Key_Down)
    QTest.keyClick(table, Qt.Key.Key_Return)
    QTest.keyClick(table, Qt.Key.Key_Delete)
    assert (table.selected, opened, removed) == ("b", ["b"], ["b"])
    bar = table.horizontalScrollBar()
    assert bar.maximum() > 0  # narrower than its columns
    QTest.keyClick(table, Qt.Key.Key_Right)
    across = bar.value()
    assert across > 0
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert (table.selected, bar.value()) == ("c", across)
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert bar.value() == 0


def test_a_click_anywhere_in_a_row_selects_it_and_scrolls_nothing(table: RecordTable[Record]) -> None:
    opened: list[str] = []
    table.opened.connect(opened.append)
    table.horizontalScrollBar().setValue(table.horizontalScrollBar().maximum())
    across = table.horizontalScrollBar().value()
    at = QPoint(350, table.visualRect(table.index_of("b")).center().y())
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert (table.selected, table.horizontalScrollBar().value()) == ("b", across)
    QTest.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert opened == ["b"]


@pytest.mark.parametrize("column", [0, 1])
def test_f2_renames_the_clicked_row_in_every_column(
    column: int, table: RecordTable[Record], qtbot: QtBot
) -> None:
    renamed: list[tuple[str, str]] = []
    opened: list[str] = []
    table.renamed.connect(lambda *told: renamed.append(told))
    table.opened.connect(opened.append)
    at = table.visualRect(table.index_of("b").siblingAtColumn(column)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    QTest.keyClick(table, Qt.Key.Key_F2)
    editor = table.findChild(QLineEdit)
    assert (editor.text(), editor.accessibleName()) == ("B", "Name")
    editor.setText("First")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: renamed == [("b", "First")])
    assert opened == []


@pytest.mark.parametrize("rows", [THREE, THREE[::-1], [*THREE, Record("d", "D")]], ids=len)
def test_what_is_typed_in_a_row_stays_while_the_rows_change(
    table: RecordTable[Record], rows: list[Record], qtbot: QtBot
) -> None:
    renamed: list[tuple[str, str]] = []
    table.renamed.connect(lambda *told: renamed.append(told))
    table.rename()
    editor = table.findChild(QLineEdit)
    QTest.keyClicks(editor, "Typed")
    table.show_rows(rows)
    table.select("c")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: table.selected == "c")
    assert (renamed, list(table.rows)) == ([("a", "Typed")], rows)


def test_a_screen_reader_reads_the_row_wherever_it_was_clicked(table: RecordTable[Record]) -> None:
    at = table.visualRect(table.index_of("b").siblingAtColumn(1)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    read = QAccessible.queryAccessibleInterface(table)
    assert read.text(QAccessible.Text.Name) == "Records"
    assert read.focusChild().text(QAccessible.Text.Name) == "B, 1 MB"
    told = [read.child(number).text(QAccessible.Text.Name) for number in range(read.childCount())]
    assert told == ["Name", "Size", "A, 1 MB", "1 MB", "B, 1 MB", "1 MB", "C, 1 MB", "1 MB"]


def test_tab_puts_a_ring_around_the_row_and_a_click_does_not(qtbot: QtBot, theme: Theme) -> None:
    window, field, table = QWidget(), QLineEdit(), RecordTable[Record]("Records", COLUMNS)
    column_of(field, table, parent=window)
    qtbot.addWidget(window)
    table.show_rows(THREE)
    field.setFocus()
    with qtbot.waitExposed(window):
        window.show()

    def ringed() -> bool:
        row = table.visualRect(table.index_of("a"))
        image = table.viewport().grab(row.adjusted(0, 0, 100, 0)).toImage()
        return image.pixelColor(60, 1) == theme.color("focus")

    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(60, 20))
    assert table.hasFocus()
    assert not ringed()
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_Tab)
    assert table.hasFocus()
    assert ringed()


def test_titles_are_read_and_never_selected(table: RecordTable[Record]) -> None:
    first, second = Record("", "First"), Record("", "Second")
    table.show_rows([first, THREE[0], second, *THREE[1:]])
    assert table.selected == "a"
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert table.selected == "b"
    title = table.visualRect(table.model().index(2, 0))
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=title.center())
    assert table.selected == "b"
    read = QAccessible.queryAccessibleInterface(table)
    told = [read.child(number).text(QAccessible.Text.Name) for number in range(read.childCount())]
    assert told[2:10:2] == ["First, 1 MB", "A, 1 MB", "Second, 1 MB", "B, 1 MB"]
    table.show_rows([first, THREE[0], second, THREE[2]])
    assert table.selected == "c"
    table.show_rows([first, THREE[0]])
    assert table.selected == "a"
    assert not table.index_of("").isValid()


def test_the_title_above_a_row_is_scrolled_to_with_it(table: RecordTable[Record]) -> None:
    records = [Record(f"{number}", f"{number}", "one\ntwo") for number in range(20)]
    table.show_rows([Record("", "All"), *records])
    heights = [table.visualRect(table.model().index(place, 0)).height() for place in (0, 1)]
    assert heights == [34, 60]
    table.select("19")
    table.select("0")
    assert table.visualRect(table.model().index(0, 0)).top() == 0
    assert table.viewport().rect().contains(table.visualRect(table.index_of("0")).center())


def test_without_rows_the_message_is_seen_and_read(table: RecordTable[Record]) -> None:
    table.set_empty("Nothing", "Add something.")
    labels = table.viewport().findChildren(TextLabel)
    assert not [each for each in labels if each.isVisible()]
    assert not table.accessibleDescription()
    table.show_rows([])
    assert [each.text() for each in labels if each.isVisible()] == ["Nothing", "Add something."]
    assert table.accessibleDescription() == "Nothing. Add something."


@pytest.mark.parametrize("zoom", [1.0, 1.5])
def test_the_spare_width_goes_to_the_column_that_grows(
    zoom: float, table: RecordTable[Record], theme: Theme, qtbot: QtBot
) -> None:
    theme.set_zoom(zoom)
    for width in (1100, 1300):
        table.resize(width, 300)
        qtbot.waitUntil(lambda: table.header().length() == table.viewport().width())
        assert table.columnWidth(1) == pytest.approx(312 * zoom, abs=1)
    table.resize(400, 300)
    qtbot.waitUntil(lambda: table.header().length() == pytest.approx(524 * zoom, abs=2))
