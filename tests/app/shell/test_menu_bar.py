"""The actions and the menu bar that are made from the table of commands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QWidget

from app.shell.commands import MenuFacts, all_commands
from app.shell.window import MainWindow
from tests.app.stage import until


def in_menus(window: MainWindow) -> dict[str, list[str]]:
    """The visible commands of each menu."""
    found = {}
    for top in window.menuBar().actions():
        menu = top.menu()
        listed = [
            row for each in menu.actions() for row in (each.menu().actions() if each.menu() else [each])
        ]
        found[top.text()] = [each.objectName() for each in listed if each.isVisible()]
    return {title: [name for name in names if name] for title, names in found.items()}


async def test_commands_have_roles_follow_facts_and_are_in_menus(window: MainWindow) -> None:
    actions, role = window.menu_actions, QAction.MenuRole
    assert actions["about"].menuRole() == role.AboutRole
    assert actions["settings"].menuRole() == role.PreferencesRole
    assert actions["quit"].menuRole() == role.QuitRole
    assert actions["inspector"].menuRole() == role.NoRole
    # Qt recognises these by title, and passes them to an open panel of macOS.
    guessed = [each.id for each in all_commands() if actions[each.id].menuRole() == role.TextHeuristicRole]
    assert guessed == ["cut", "copy", "paste", "select_all"]
    assert [actions[name].text() for name in guessed] == ["Cut", "Copy", "Paste", "Select All"]

    actions = window.menu_actions
    actions.show_facts(MenuFacts())
    assert not actions["stop"].isEnabled()
    assert actions["sidebar"].text() == "Show Sidebar"
    actions.show_facts(MenuFacts(busy=True, checked=frozenset({"sidebar"})))
    assert actions["stop"].isEnabled()
    assert actions["sidebar"].text() == "Hide Sidebar"
    assert not actions["about"].isEnabled()  # nothing is provided for it

    shown = [name for names in in_menus(window).values() for name in names]
    assert shown == [each.id for each in all_commands() if each.act is not None]
    calls: list[str] = []
    window.menu_actions.provide("about", lambda: calls.append("about"))
    assert "about" in in_menus(window)["&Help"]
    window.menu_actions["about"].trigger()
    assert calls == ["about"]
    with pytest.raises(ValueError, match="about has an action already"):
        window.menu_actions.provide("about", lambda: None)


async def test_minimize_zoom_and_bring_all_to_front(window: MainWindow) -> None:
    actions = window.menu_actions
    library = window.windows.show("library")
    await until(lambda: QApplication.activeWindow() is library)
    actions["zoom_window"].trigger()
    assert library.isMaximized()
    assert not window.isMaximized()
    actions["zoom_window"].trigger()
    assert not library.isMaximized()
    window.activateWindow()
    await until(lambda: QApplication.activeWindow() is window)
    raised = _order(window, library)
    actions["front"].trigger()
    assert raised() == [library, window]
    actions["minimize"].trigger()
    assert window.isMinimized()


def _order(*widgets: QWidget) -> Callable[[], list[QObject]]:
    """The widgets that were raised since, in order."""

    class Watch(QObject):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[QObject] = []

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.ZOrderChange:
                self.found.append(watched)
            return False

    watch = Watch()
    for widget in widgets:
        widget.installEventFilter(watch)
    return lambda: watch.found
