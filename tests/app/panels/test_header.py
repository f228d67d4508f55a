"""The header: what it says in full and what fits."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.panels import strings
from app.panels.header import HEIGHT_PX, Header


@pytest.fixture
def header(qtbot: QtBot) -> Header:
    widget = Header()
    qtbot.addWidget(widget)
    widget.resize(896, HEIGHT_PX)
    widget.show()
    return widget


def test_a_long_title_is_cut_where_there_is_no_room(header: Header) -> None:
    title = "Which of the ferries that leave today go to the island"
    header.set_title(title)
    assert header.model_button.toolTip() == strings.CHOOSE_MODEL
    header.resize(360, HEIGHT_PX)
    assert header.title == title
    assert title in header.model_button.toolTip()
    header.resize(896, HEIGHT_PX)
    assert header.model_button.toolTip() == strings.CHOOSE_MODEL


def test_token_colors_go_round(qtbot: QtBot, header: Header) -> None:
    values: list[str] = []
    header.token_colors.value_changed.connect(values.append)
    for _ in range(3):
        header.token_colors.cycle()
    assert values == ["origins", "off", "drafts"]


def test_a_small_button_chooses_the_next_token_colors(qtbot: QtBot, header: Header) -> None:
    header.token_colors.set_value("origins")
    assert header.token_colors.width() == 28
    assert header.token_colors.toolTip() == "Token colors: Origins"
    with qtbot.waitSignal(header.token_colors.value_changed, timeout=20_000) as heard:
        qtbot.mouseClick(header.token_colors, Qt.MouseButton.LeftButton)
    assert heard.args == ["off"]
    assert header.token_colors.accessibleDescription() == "Off"


def test_the_sidebars_buttons_are_here_only_while_it_is_hidden(header: Header) -> None:
    assert header.sidebar_button.isHidden()
    header.set_sidebar_shown(False)
    assert header.sidebar_button.isVisible()
    assert header.new_chat_button.isVisible()


def test_the_inspectors_switch_says_what_is_wanted(qtbot: QtBot, header: Header) -> None:
    header.set_inspector_shown(True)
    with qtbot.waitSignal(header.inspector_button.clicked, timeout=20_000):
        qtbot.mouseClick(header.inspector_button, Qt.MouseButton.LeftButton)
    assert not header.inspector_button.isChecked()  # the wish is off


def test_all_of_the_title_opens_the_models_menu(header: Header, qtbot: QtBot) -> None:
    """It was an arrow of 16 pixels."""
    header.set_title("Tides")
    header.set_subtitle("Fake 1M, float32")
    button = header.model_button
    for place in (QPoint(4, 4), button.rect().center(), button.rect().bottomRight() - QPoint(4, 4)):
        with qtbot.waitSignal(header.model_button.clicked, timeout=20_000):
            qtbot.mouseClick(button, Qt.MouseButton.LeftButton, pos=place)
    button.setFocus(Qt.FocusReason.TabFocusReason)
    with qtbot.waitSignal(header.model_button.clicked, timeout=20_000):
        qtbot.keyClick(button, Qt.Key.Key_Space)
    assert button.accessibleName() == strings.CHOOSE_MODEL
    assert button.accessibleDescription() == "Tides. Fake 1M, float32"
