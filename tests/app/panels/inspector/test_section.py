"""Section: opens and closes by mouse and keys, and says what it holds while closed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.panels.section import Section
from app.theme.theme import Theme


@pytest.fixture
def content() -> QLabel:
    return QLabel("inside")


@pytest.fixture
def section(theme: Theme, qtbot: QtBot, content: QLabel) -> Section:
    section = Section(theme, "Sampling", opened=False)
    section.body.addWidget(content)
    section.set_summary("temp 0.7")
    qtbot.addWidget(section)
    section.resize(304, 200)
    section.show()
    return section


def test_a_click_turns_it(section: Section, content: QLabel, qtbot: QtBot) -> None:
    assert not content.isVisible()
    qtbot.mouseClick(section.header, Qt.MouseButton.LeftButton)
    assert section.is_open
    assert content.isVisible()
    qtbot.mouseClick(section.header, Qt.MouseButton.LeftButton)
    assert not content.isVisible()


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return])
def test_keys_turn_it(section: Section, qtbot: QtBot, key: Qt.Key) -> None:
    qtbot.keyClick(section.header, key)
    assert section.is_open
    qtbot.keyClick(section.header, key)
    assert not section.is_open


def test_arrows_open_and_close(section: Section, qtbot: QtBot) -> None:
    qtbot.keyClick(section.header, Qt.Key.Key_Right)
    qtbot.keyClick(section.header, Qt.Key.Key_Right)
    assert section.is_open
    qtbot.keyClick(section.header, Qt.Key.Key_Left)
    assert not section.is_open


def test_closed_it_says_what_it_holds(section: Section) -> None:
    assert section.title == section.header.accessibleName() == "Sampling"
    assert section.header.accessibleDescription() == "Closed, temp 0.7"
    section.set_open(True)
    assert section.header.accessibleDescription() == "Open"
    section.set_summary("temp 0")
    section.set_open(False)
    assert section.header.accessibleDescription() == "Closed, temp 0"


def test_the_summary_is_painted_only_while_closed(section: Section) -> None:
    closed = section.header.grab().toImage()
    section.set_summary("")
    assert section.header.grab().toImage() != closed
    section.set_open(True)
    opened = section.header.grab().toImage()
    section.set_summary("temp 0.7")
    assert section.header.grab().toImage() == opened


def test_the_header_is_38_high(section: Section) -> None:
    assert section.header.height() == 38
