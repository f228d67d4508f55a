"""Button and IconButton: mouse, keyboard, sizes, colours."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.controls.buttons import Button, IconButton
from app.theme.theme import Theme
from tests.app.controls.painting import pixel
from tests.app.controls.windows import activate


@pytest.fixture
def pressed() -> list[bool]:
    return []


@pytest.fixture
def button(qtbot: QtBot, pressed: list[bool]) -> Button:
    button = Button("Restart")
    button.clicked.connect(lambda: pressed.append(True))
    qtbot.addWidget(button)
    button.show()
    return button


def test_the_mouse_presses_it(button: Button, qtbot: QtBot, pressed: list[bool]) -> None:
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert len(pressed) == 1


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_keys_press_it(button: Button, qtbot: QtBot, pressed: list[bool], key: Qt.Key) -> None:
    qtbot.keyClick(button, key)
    assert len(pressed) == 1


def test_disabled_it_does_nothing(button: Button, qtbot: QtBot, pressed: list[bool]) -> None:
    button.setEnabled(False)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.keyClick(button, Qt.Key.Key_Return)
    assert pressed == []


def test_sizes_are_the_designs(qtbot: QtBot) -> None:
    plain, small, link = Button("A"), Button("A", small=True), Button("A", "link")
    for each in (plain, small, link):
        qtbot.addWidget(each)
    assert plain.sizeHint().height() == 28
    assert small.sizeHint().height() == 24
    assert plain.sizeHint().width() > link.sizeHint().width()
    with_icon = Button("A", icon_name="copy")
    qtbot.addWidget(with_icon)
    assert with_icon.sizeHint().width() == plain.sizeHint().width() + 20


def test_primary_is_filled_with_the_accent(theme: Theme, qtbot: QtBot) -> None:
    button = Button("Restart worker", "primary")
    qtbot.addWidget(button)
    button.resize(button.sizeHint())
    assert pixel(button, 6, 14) == theme.color("accent_fill")
    button.setDown(True)
    assert pixel(button, 6, 14) == theme.color("accent_pressed")
    button.setDown(False)
    button.setEnabled(False)
    assert pixel(button, 6, 14) == theme.color("fill2")


def test_it_is_a_button_with_a_name(button: Button) -> None:
    face = QAccessible.queryAccessibleInterface(button)
    assert face.role() == QAccessible.Role.Button
    assert face.text(QAccessible.Text.Name) == "Restart"


def test_an_icon_button_says_what_it_does(qtbot: QtBot) -> None:
    button = IconButton("sidebar", "Hide sidebar")
    qtbot.addWidget(button)
    assert (button.sizeHint().width(), button.sizeHint().height()) == (28, 28)
    assert button.accessibleName() == button.toolTip() == "Hide sidebar"


def test_a_checkable_icon_button_stays_on(theme: Theme, qtbot: QtBot) -> None:
    button = IconButton("inspector", "Settings", checkable=True)
    qtbot.addWidget(button)
    button.resize(28, 28)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.isChecked()
    assert pixel(button, 3, 14) == theme.color("fill2")
    qtbot.keyClick(button, Qt.Key.Key_Return)
    assert not button.isChecked()


def test_an_icon_button_can_change_its_drawing(qtbot: QtBot) -> None:
    button = IconButton("copy", "Copy")
    qtbot.addWidget(button)
    button.resize(28, 28)
    before = button.grab().toImage()
    button.set_icon_name("check")
    assert button.icon_name == "check"
    assert button.grab().toImage() != before


def test_tab_walks_from_button_to_button(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    first, second = Button("First"), IconButton("copy", "Second")
    layout.addWidget(first)
    layout.addWidget(second)
    activate(window, qtbot)
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    assert second.hasFocus()
