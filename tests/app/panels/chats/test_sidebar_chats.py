"""The sidebar with many chats, its search, its menus and its undo bar, without a store."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.panels import strings
from app.panels.chat_row import ChatRow
from app.panels.sidebar import Sidebar
from app.theme.theme import Theme
from tests.app.controls.painting import colors
from tests.app.controls.windows import activate

NOW = datetime.now().replace(hour=12, minute=0)


def rows(count: int) -> list[ChatRow]:
    return [ChatRow(f"c{n}", f"Chat number {n}", NOW - timedelta(hours=n)) for n in range(count)]


@pytest.fixture
def sidebar(theme: Theme, qtbot: QtBot) -> Sidebar:
    sidebar = Sidebar(theme)
    qtbot.addWidget(sidebar)
    sidebar.resize(240, 700)
    activate(sidebar, qtbot)
    return sidebar


def test_five_thousand_chats_are_listed_without_waiting(sidebar: Sidebar) -> None:
    many = rows(5000)
    sidebar.set_chats(many, "c0")
    best_s = 10.0
    for _ in range(3):
        begun = time.perf_counter()
        sidebar.set_chats(many, "c1500")
        sidebar.grab()
        best_s = min(best_s, time.perf_counter() - begun)
    assert best_s < 0.25
    assert sidebar.list.selected == "c1500"


def test_a_search_is_asked_once_the_keys_rest(sidebar: Sidebar, qtbot: QtBot) -> None:
    asked: list[str] = []
    sidebar.search_requested.connect(asked.append)
    sidebar.search.setFocus()
    with qtbot.waitSignal(sidebar.search_requested):
        qtbot.keyClicks(sidebar.search, "fog")
    assert asked == ["fog"]
    with qtbot.waitSignal(sidebar.search_ended):
        qtbot.mouseClick(sidebar.search.clear_button, Qt.MouseButton.LeftButton)


def test_return_goes_to_the_first_result(sidebar: Sidebar, qtbot: QtBot) -> None:
    chosen: list[str] = []
    sidebar.chat_selected.connect(chosen.append)
    found = [ChatRow("c7", "Fog", NOW, False, "the fog lifts", ((4, 7),), "t")]
    sidebar.search_requested.connect(lambda query: sidebar.set_results(found, ""))
    qtbot.keyClicks(sidebar.search, "fog")
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Return)
    assert chosen == ["c7"]
    assert sidebar.list.hasFocus()


def test_a_chat_has_a_menu_and_the_list_has_one(sidebar: Sidebar) -> None:
    sidebar.set_chats([ChatRow("c0", "One", NOW, True), *rows(2)[1:]], "c0")
    menu = sidebar.menu_for("c0")
    texts = [action.text() for action in menu.actions() if not action.isSeparator()]
    assert texts == [
        strings.RENAME,
        strings.UNPIN,
        strings.ARCHIVE,
        strings.MOVE_TO_PROJECT,
        strings.EXPORT_PDF,
        strings.EXPORT_HTML,
        strings.EXPORT_MARKDOWN,
        strings.EXPORT_JSON,
        strings.IMPORT,
        strings.DELETE,
    ]
    heard: list[object] = []
    sidebar.pin_requested.connect(lambda *given: heard.append(given))
    sidebar.export_requested.connect(lambda *given: heard.append(given))
    sidebar.delete_requested.connect(heard.append)
    for action in menu.actions()[1:]:
        if action.text() in (strings.UNPIN, strings.EXPORT_JSON, strings.DELETE):
            action.trigger()
    assert heard == [("c0", False), ("c0", "json"), "c0"]
    general = [each.text() for each in sidebar.menu_for("").actions() if not each.isSeparator()]
    others = [strings.EXPORT_ALL_MARKDOWN, strings.EXPORT_ALL_JSON, strings.IMPORT]
    assert general == [strings.NEW_PROJECT, *others]


def test_the_undo_bar_goes_by_itself(sidebar: Sidebar, qtbot: QtBot) -> None:
    bar = sidebar.undo_bar
    bar.set_time_ms(30)
    with qtbot.waitSignal(bar.expired):
        bar.show_done("“A very long title of a chat about departures in fog” deleted")
        assert bar.isVisible()
        assert bar.accessibleName() == bar.text
    bar.clear()
    assert bar.isHidden()


def test_a_found_passage_is_painted_with_its_match(sidebar: Sidebar, theme: Theme) -> None:
    plain = ChatRow("c1", "Fog", NOW)
    sidebar.set_results([plain], "")
    before = sidebar.list.visualRect(sidebar.list.model().index(1, 0)).height()
    found = ChatRow("c1", "Fog", NOW, False, "what the harbour master said about fog", ((35, 38),), "t")
    sidebar.set_results([found], "")
    after = sidebar.list.visualRect(sidebar.list.model().index(1, 0)).height()
    assert (before, after) == (30, 48)
    assert theme.color("text2").name() in colors(sidebar.list)
