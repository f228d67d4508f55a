"""Button and IconButton: keys, names, focus."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.controls.buttons import Button, IconButton
from app.theme.theme import Theme
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


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_keys_press_it(button: Button, qtbot: QtBot, pressed: list[bool], key: Qt.Key) -> None:
    qtbot.keyClick(button, key)
    assert len(pressed) == 1


def test_an_icon_button_says_what_it_does(qtbot: QtBot) -> None:
    button = IconButton("sidebar", "Hide sidebar")
    qtbot.addWidget(button)
    assert (button.sizeHint().width(), button.sizeHint().height()) == (28, 28)
    assert button.accessibleName() == button.toolTip() == "Hide sidebar"


def test_a_focused_button_keeps_its_size(theme: Theme, qtbot: QtBot) -> None:
    for zoom in (1.0, 1.5):
        theme.set_zoom(zoom)
        window = QWidget()
        qtbot.addWidget(window)
        layout = QVBoxLayout(window)
        made = [
            Button("Run", kind, small) for kind in ("plain", "primary", "link") for small in (True, False)
        ]
        for each in made:
            layout.addWidget(each)
        activate(window, qtbot)
        for each in made:
            before = each.sizeHint()
            each.setFocus(Qt.FocusReason.TabFocusReason)
            assert each.hasFocus()
            assert each.sizeHint() == before
