"""Commands of the menus that act on the last answer, the tint, the gauges and the window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.shell.window import MainWindow
from tests.app.stage import Stage, asked, last, press, ready, until


async def test_the_last_answer_help_and_the_full_screen(window: MainWindow) -> None:
    actions, chats = window.menu_actions, window.controller.chats
    assert not actions["continue"].isEnabled()
    assert not actions["copy_answer"].isEnabled()
    await asked(window, "write 4")
    actions["copy_answer"].trigger()
    assert QGuiApplication.clipboard().text() == last(window).text == "ECHO 1: w1 w2 w3"
    await until(lambda: actions["continue"].isEnabled(), what="it ended at its length")
    actions["continue"].trigger()
    await until(lambda: len(last(window).tokens) > 4, what="it is not continued")
    await ready(window)
    actions["regenerate"].trigger()
    await until(lambda: len(chats.open.turns[-1].versions) == 2)
    await ready(window)
    before = chats.open.id
    actions["branch"].trigger()
    assert chats.open.id != before
    assert len(chats.open.turns) == 1

    await press(window, Qt.Key.Key_F1)
    shown = window.windows.find("help")
    assert shown.isVisible()
    shown.close()
    window.showFullScreen()  # as the system's own button
    assert window.isFullScreen()
    assert window.menu_actions["full_screen"].text() == "Exit Full Screen"
    window.menu_actions["full_screen"].trigger()
    assert not window.isFullScreen()


async def test_the_token_colors_are_in_the_view_menu_and_remembered(stage: Stage, tmp_path: Path) -> None:
    window = await stage.open(folder=tmp_path)
    actions, views = window.menu_actions, window.views
    await asked(window, "write 5")
    assert views.header.token_colors.value == "drafts"
    assert views.legend.isVisible()
    actions["colors_off"].trigger()
    assert views.header.token_colors.value == "off"
    assert not views.legend.isVisible()
    window.controller.chat.start()
    await asked(window, "write 5")
    assert not views.legend.isVisible()  # in a chat that is opened later, too
    window = await stage.ready(folder=tmp_path)
    assert window.views.header.token_colors.value == "off"
