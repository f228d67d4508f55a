"""The actions as Qt's and the menu bar made of them."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from app.shell.menus.actions import Actions
from app.shell.menus.facts import MenuFacts
from app.shell.menus.menu_bar import fill


def shown(window: QMainWindow) -> dict[str, list[str]]:
    """The menus that show, with the names of what shows in them."""
    found = {}
    for top in window.menuBar().actions():
        menu = top.menu()
        if top.isVisible() and menu is not None:
            found[top.text()] = [each.objectName() for each in menu.actions() if each.isVisible()]  # type: ignore[attr-defined]
    return found


def test_only_what_is_bound_shows(qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    actions, calls = Actions(window), []
    fill(window.menuBar(), actions)
    assert shown(window) == {}
    actions.bind({"tint": lambda: calls.append("tint"), "lab": lambda: calls.append("lab")})
    names = {title: [name for name in ids if name] for title, ids in shown(window).items()}
    assert names == {"&View": ["tint"], "&Performance": ["lab"]}
    actions["tint"].trigger()
    assert calls == ["tint"]
    with pytest.raises(ValueError, match="tint is bound already"):
        actions.bind({"tint": lambda: None})


def test_facts_decide_what_can_be_used(qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    actions = Actions(window)
    actions.bind({"stop": lambda: None, "sidebar": lambda: None})
    assert not actions["stop"].isEnabled()
    assert not actions["sidebar"].isChecked()
    actions.show_facts(MenuFacts(busy=True, checked=frozenset({"sidebar"})))
    assert actions["stop"].isEnabled()
    assert actions["sidebar"].isChecked()
    # Nothing is bound to it, so it stays off whatever is so.
    assert not actions["new_chat"].isEnabled()


def test_roles_are_given_and_never_guessed(qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    actions, role = Actions(window), QAction.MenuRole
    assert actions["about"].menuRole() == role.AboutRole
    assert actions["settings"].menuRole() == role.PreferencesRole
    assert actions["quit"].menuRole() == role.QuitRole
    assert actions["inspector"].menuRole() == role.NoRole
