"""Sidebar: choosing and finding chats, menus, and the worker's state, without a store."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit
from pytestqt.qtbot import QtBot

from app.controls.text_label import TextLabel
from app.panels import strings
from app.panels.chat_list import ChatList
from app.panels.chat_row import ChatRow, facts
from app.panels.sidebar import Sidebar, WorkerStatus
from app.theme.theme import Theme
from tests.app.controls.painting import colors, pixel
from tests.app.controls.windows import activate
from tests.app.painted import noted_words

TITLES = ("Fog departures", "Merge intervals in Python", "Letter to the council")


def _chats(count: int = 3) -> list[ChatRow]:
    """Newest first; the last of three is of yesterday."""
    now = datetime.now().replace(hour=12, minute=0)
    ages = [timedelta(minutes=0), timedelta(minutes=5), timedelta(days=1)]
    chats = [ChatRow(f"c{i}", TITLES[i], now - age) for i, age in enumerate(ages)]
    more = [ChatRow(f"c{i}", f"Chat {i}", now - timedelta(days=i)) for i in range(3, count)]
    return chats + more


@pytest.fixture
def sidebar(qtbot: QtBot) -> Sidebar:
    sidebar = Sidebar()
    qtbot.addWidget(sidebar)
    sidebar.resize(240, 500)
    activate(sidebar, qtbot)
    return sidebar


@pytest.fixture
def chosen(sidebar: Sidebar) -> list[str]:
    chosen: list[str] = []
    sidebar.chat_selected.connect(chosen.append)
    return chosen


def _list(sidebar: Sidebar) -> ChatList:
    return sidebar.findChildren(ChatList)[0]


def _index(sidebar: Sidebar, title: str) -> QModelIndex:
    rows = _list(sidebar).model()
    found = rows.match(rows.index(0, 0), Qt.ItemDataRole.DisplayRole, title, 1, Qt.MatchFlag.MatchExactly)
    assert found, title
    return found[0]


def _button(sidebar: Sidebar, name: str) -> QAbstractButton:
    return next(b for b in sidebar.findChildren(QAbstractButton) if b.accessibleName() == name)


def test_setting_chats_is_silent_and_marks_the_selected(sidebar: Sidebar, chosen: list[str]) -> None:
    sidebar.set_chats(_chats(), "c1")
    assert _list(sidebar).selected == "c1"
    sidebar.set_chats(_chats(), "gone")
    assert _list(sidebar).selected == ""
    assert chosen == []


def test_a_click_selects_a_chat_but_not_a_group(sidebar: Sidebar, chosen: list[str], qtbot: QtBot) -> None:
    sidebar.set_chats(_chats(), "c0")
    view = _list(sidebar)
    for title in (TITLES[2], "Yesterday", TITLES[1]):
        where = view.visualRect(_index(sidebar, title)).center()
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert chosen == ["c2", "c1"]
    assert view.selected == "c1"


def test_arrow_keys_pass_over_group_titles(sidebar: Sidebar, chosen: list[str], qtbot: QtBot) -> None:
    sidebar.set_chats(_chats(), "c0")
    view = _list(sidebar)
    view.setFocus()
    keys = (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_End, Qt.Key.Key_Home)
    for key in (*keys, Qt.Key.Key_Up, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp):
        qtbot.keyClick(view, key)
    assert chosen == ["c1", "c2", "c1", "c2", "c0", "c2", "c0"]


def test_focus_alone_opens_no_chat(sidebar: Sidebar, chosen: list[str], qtbot: QtBot) -> None:
    sidebar.set_chats(_chats(), "")
    view = _list(sidebar)
    view.setFocus(Qt.FocusReason.TabFocusReason)
    assert chosen == []
    qtbot.keyClick(view, Qt.Key.Key_Space)
    assert chosen == ["c0"]


def test_the_keyboard_shows_where_it_is(sidebar: Sidebar, theme: Theme, qtbot: QtBot) -> None:
    sidebar.set_chats(_chats(), "c0")
    sidebar.list.setFocus(Qt.FocusReason.MouseFocusReason)
    ring = theme.color("focus").name()
    assert ring not in colors(sidebar)
    _button(sidebar, strings.NEW_CHAT).setFocus()
    qtbot.keyClick(_button(sidebar, strings.NEW_CHAT), Qt.Key.Key_Tab)
    assert sidebar.search.hasFocus()
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Tab)
    assert _list(sidebar).hasFocus()
    assert ring in colors(_list(sidebar))


def test_without_chats_it_says_so(sidebar: Sidebar) -> None:
    label = next(each for each in sidebar.findChildren(TextLabel) if each.text() == strings.NO_CHATS)
    assert label.isVisible()
    assert not _list(sidebar).isVisible()
    sidebar.set_chats(_chats(), "c0")
    assert not label.isVisible()
    assert _list(sidebar).isVisible()


def test_a_chat_without_a_title_still_has_a_name(sidebar: Sidebar) -> None:
    sidebar.set_chats([ChatRow("c0", "", datetime.now())], "c0")
    assert _index(sidebar, strings.UNTITLED).isValid()


@pytest.mark.parametrize(
    ("level", "token"),
    [("ready", "series_blue"), ("busy", "series_blue"), ("bad", "series_vermilion"), ("idle", "normal_mark")],
)
def test_the_foot_tells_how_the_worker_is(sidebar: Sidebar, theme: Theme, level: str, token: str) -> None:
    sidebar.set_worker("SmolLM2 135M", "Writing · 1.2 of 16.0 GB", level)  # type: ignore[arg-type]
    foot = sidebar.findChildren(WorkerStatus)[0]
    assert foot.accessibleDescription() == "SmolLM2 135M, Writing · 1.2 of 16.0 GB"
    assert foot.level == level
    assert foot.height() == 52
    assert pixel(foot, 20, 26) == theme.color(token)


def test_many_chats_scroll(sidebar: Sidebar, chosen: list[str], qtbot: QtBot) -> None:
    sidebar.set_chats(_chats(60), "c0")
    view = _list(sidebar)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert chosen == ["c59"]
    assert view.verticalScrollBar().value() > 0
    assert view.rect().contains(view.visualRect(_index(sidebar, "Chat 59")).center())


NOW = datetime.now().replace(hour=12, minute=0)


def rows(count: int) -> list[ChatRow]:
    return [ChatRow(f"c{n}", f"Chat number {n}", NOW - timedelta(hours=n)) for n in range(count)]


@pytest.mark.quiet
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
        sidebar.search.clear_action.trigger()


def test_return_goes_to_the_first_result(sidebar: Sidebar, qtbot: QtBot) -> None:
    chosen: list[str] = []
    sidebar.chat_selected.connect(chosen.append)
    found = [ChatRow("c7", "Fog", NOW, False, "the fog lifts", ((4, 7),), "t")]
    sidebar.search_requested.connect(lambda query: sidebar.set_results(found, ""))
    qtbot.keyClicks(sidebar.search, "fog")
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Return)
    assert chosen == ["c7"]
    assert sidebar.list.hasFocus()


def test_a_title_being_typed_stays_while_the_list_changes(sidebar: Sidebar, qtbot: QtBot) -> None:
    renamed: list[tuple[str, str]] = []
    view, chats = _list(sidebar), _chats()
    view.rename_requested.connect(lambda *told: renamed.append(told))
    sidebar.set_chats(chats, "c0")
    view.rename("c0")
    editor = view.findChild(QLineEdit)
    QTest.keyClicks(editor, "Typed")
    view.set_busy("c0")
    sidebar.set_chats([replace(chats[1], pinned=True), replace(chats[0], title="Suggested")], "c0")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: view.row("c2") is None)
    assert renamed == [("c0", "Typed")]


def test_a_chat_has_a_menu_and_the_list_has_one(sidebar: Sidebar) -> None:
    sidebar.set_chats([ChatRow("c0", "One", NOW, True), *rows(2)[1:]], "c0")
    menu = sidebar.menu_for("c0")
    texts = [action.text() for action in menu.actions() if not action.isSeparator()]
    assert texts == [
        strings.RENAME,
        strings.UNPIN,
        strings.MOVE_TO_PROJECT,
        *(one for one, _ in strings.EXPORTS.values()),
        strings.DELETE,
    ]
    heard: list[object] = []
    sidebar.pin_requested.connect(lambda *given: heard.append(given))
    sidebar.export_requested.connect(lambda *given: heard.append(given))
    sidebar.delete_requested.connect(heard.append)
    for action in menu.actions()[1:]:
        if action.text() in (strings.UNPIN, "Export as JSON…", strings.DELETE):
            action.trigger()
    assert heard == [("c0", False), ("c0", "json"), "c0"]
    general = [each.text() for each in sidebar.menu_for("").actions() if not each.isSeparator()]
    assert general == [strings.NEW_PROJECT, strings.IMPORT, *(every for _, every in strings.EXPORTS.values())]


def test_a_found_passage_is_painted_with_its_match(sidebar: Sidebar, theme: Theme) -> None:
    plain = ChatRow("c1", "Fog", NOW)
    sidebar.set_results([plain], "")
    before = sidebar.list.visualRect(sidebar.list.model().index(1, 0)).height()
    found = ChatRow("c1", "Fog", NOW, False, "what the harbour master said about fog", ((35, 38),), "t")
    sidebar.set_results([found], "")
    after = sidebar.list.visualRect(sidebar.list.model().index(1, 0)).height()
    assert (before, after) == (30, 48)
    assert theme.color("text2").name() in colors(sidebar.list)


def test_the_facts_of_a_chat_are_painted_and_spoken(sidebar: Sidebar) -> None:
    chat = ChatRow("c1", "Fog", NOW - timedelta(days=2), pinned=True)
    sidebar.set_chats([chat], "")
    with noted_words() as noted:
        sidebar.list.grab()
    beside = facts(chat, datetime.now())
    assert " · ".join(beside) in [word.text for word in noted]
    index = next(each for each in _indexes(sidebar) if each.data() == "Fog")
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == ", ".join(("Fog", strings.PINNED, *beside))


def _indexes(sidebar: Sidebar) -> list[QModelIndex]:
    model = sidebar.list.model()
    return [model.index(place, 0) for place in range(model.rowCount())]
