"""Sheets and alerts have no icons of Qt's style; a click shows no focus box, the Tab key does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QInputDialog,
    QMessageBox,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.controls import sheets
from app.controls.buttons import Button
from app.controls.choices import CheckBox, Popup, Segment, Switch
from app.controls.numbers import Slider
from app.panels.document_view import DocumentView
from app.richtext.text_canvas import TextCanvas
from app.theme.theme import Theme
from tests.app.controls.painting import colors


@pytest.fixture
def window(qtbot: QtBot, theme: Theme) -> QWidget:
    theme.set_scheme("light")
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(500, 400)
    window.show()
    return window


def _question(owner: QWidget) -> None:
    sheets.Question("Reset?", "It is lost.", "Cancel", [("reset", "Reset", "danger")], owner).open()


OPENED: dict[str, Callable[[QWidget], object]] = {
    "name": lambda owner: sheets.ask_name(owner, "Rename", "Name", "a", print),
    "options": lambda owner: sheets.ask_options(owner, "Export", [("Figures", True)], "Export", print),
    "details": lambda owner: sheets.show_details(owner, "Skipped", "Two files", "a, b"),
    "question": _question,
}


@pytest.mark.parametrize("kind", OPENED)
def test_sheets_have_no_stock_icons(window: QWidget, kind: str) -> None:
    OPENED[kind](window)
    (dialog,) = window.findChildren(QDialog)
    QApplication.processEvents()
    buttons = dialog.findChildren(QPushButton)
    assert buttons
    assert [button.text() for button in buttons if not button.icon().isNull()] == []
    assert not isinstance(dialog, QMessageBox) or dialog.icon() is QMessageBox.Icon.NoIcon
    assert isinstance(dialog, QInputDialog | QMessageBox | sheets.OptionsSheet)
    dialog.close()


def test_the_question_before_replacing_a_file_has_no_stock_icon(window: QWidget, tmp_path: Path) -> None:
    file = tmp_path / "chat.md"
    file.write_text("words")
    sheets.save_file(window, "Export", file, print)
    (dialog,) = window.findChildren(QDialog)
    dialog.fileSelected.emit(str(file))  # type: ignore[attr-defined]
    dialog.done(0)
    QApplication.processEvents()
    (box,) = [each for each in window.findChildren(QMessageBox) if each.isVisible()]
    assert box.icon() is QMessageBox.Icon.NoIcon
    assert all(button.icon().isNull() for button in box.findChildren(QPushButton))
    box.close()


CONTROLS: dict[str, Callable[[], QWidget]] = {
    "button": lambda: Button("Save"),
    "segment": lambda: Segment([("a", "All"), ("k", "Kept only")]),
    "check box": lambda: CheckBox("Figures"),
    "switch": Switch,
    "slider": lambda: Slider(0, 10, 1),
    "popup": lambda: Popup([("a", "One"), ("b", "Two")]),
    "document": DocumentView,
    "text": lambda: TextCanvas((14.5, 21)),
}


@pytest.mark.parametrize("kind", CONTROLS)
def test_a_focus_box_is_for_the_keyboard_only(window: QWidget, kind: str, qtbot: QtBot, theme: Theme) -> None:
    control = CONTROLS[kind]()
    column = QVBoxLayout(window)
    home = Button("Home")
    column.addWidget(home)
    column.addWidget(control)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    home.setFocus(Qt.FocusReason.OtherFocusReason)
    QTest.qWait(20)
    plain = control.grab().toImage()
    target = control.childAt(QPoint(8, control.height() // 2)) or control
    if not isinstance(control, Popup):  # it opens at the press
        QTest.mouseClick(target, Qt.MouseButton.LeftButton)
        QTest.mouseClick(target, Qt.MouseButton.LeftButton)
    ringed = theme.color("focus").name() in colors(control)
    assert QApplication.focusWidget() is home or not ringed
    home.setFocus(Qt.FocusReason.OtherFocusReason)
    QTest.keyClick(home, Qt.Key.Key_Tab)
    QTest.qWait(20)
    assert window.isAncestorOf(QApplication.focusWidget())
    assert QApplication.focusWidget() is not home
    assert control.grab().toImage() != plain
    if isinstance(control, TextCanvas):  # clicked while it has the focus
        QTest.mouseClick(control, Qt.MouseButton.LeftButton)
        assert theme.color("focus").name() not in colors(control)
