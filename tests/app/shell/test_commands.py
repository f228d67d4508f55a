"""The table of commands: unique keys, the keys of the design, and when each command is enabled."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from typing import Any

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from app.shell.commands import MENUS, SIDEBAR_KEYS, MenuFacts, all_commands, is_typing

# The design's table of keys, without those that are the composer's own (Return, Up).
KEYS = {
    "new_chat": {"Ctrl+N"},
    "close": {"Ctrl+W"},
    "stop": {"Esc", "Ctrl+."},
    "regenerate": {"Ctrl+R"},
    "paste_raw": {"Ctrl+Shift+V"},
    "attach": {"Ctrl+O"},
    "search": {"Ctrl+K"},
    "find": {"Ctrl+F"},
    "sidebar": {SIDEBAR_KEYS},
    "inspector": {"Ctrl+Alt+I"},
    "next_colors": {"Ctrl+T"},
    "document": {"Ctrl+Alt+D"},
    "next_passage": {"Ctrl+Alt+Down"},
    "race": {"Ctrl+Shift+R"},
    "tables": {"Ctrl+Shift+T"},
    "lab": {"Ctrl+Shift+L"},
    "models": {"Ctrl+Shift+M"},
    "settings": {"Ctrl+,"},
    "zoom_in": {"Ctrl++", "Ctrl+="},
    "zoom_out": {"Ctrl+-"},
    "zoom_reset": {"Ctrl+0"},
}


def test_no_id_and_no_key_twice() -> None:
    assert [i for i, n in Counter(spec.id for spec in all_commands()).items() if n > 1] == []
    assert [k for k, n in Counter(key for spec in all_commands() for key in spec.keys).items() if n > 1] == []


def test_the_keys_of_the_design() -> None:
    declared = {spec.id: set(spec.keys) for spec in all_commands()}
    assert {action: declared[action] for action in KEYS} == KEYS
    assert ("Ctrl+Meta+S" if sys.platform == "darwin" else "Ctrl+Alt+S") == SIDEBAR_KEYS


def test_one_action_for_each_role_of_a_mac() -> None:
    roles = Counter(spec.role for spec in all_commands())
    assert (roles["about"], roles["preferences"], roles["quit"]) == (1, 1, 1)
    # Those leave their menus on a Mac; no menu may be made of them alone.
    kept = [menu.title for menu in MENUS if any(s.role == "none" for g in menu.groups for s in g)]
    assert kept == [menu.title for menu in MENUS]


@pytest.mark.parametrize(
    ("command_id", "facts", "expected"),
    [
        ("new_chat", MenuFacts(), True),
        ("stop", MenuFacts(asked=True), False),
        ("stop", MenuFacts(busy=True), True),
        ("regenerate", MenuFacts(), False),
        ("regenerate", MenuFacts(asked=True), True),
        ("regenerate", MenuFacts(asked=True, busy=True), True),  # it says why not
        ("regenerate", MenuFacts(asked=True, racing=True), False),
        ("edit_last", MenuFacts(asked=True, busy=True), True),
        ("edit_last", MenuFacts(asked=True, busy=True, busy_here=True), False),
        ("copy_answer", MenuFacts(), False),
        ("copy_answer", MenuFacts(asked=True), True),
        ("undo_delete", MenuFacts(), False),
        ("undo_delete", MenuFacts(deleted=True), True),
        ("continue", MenuFacts(asked=True), False),
        ("continue", MenuFacts(unended=True), True),
        ("continue", MenuFacts(unended=True, racing=True), False),
        ("next_passage", MenuFacts(asked=True), False),
        ("next_passage", MenuFacts(document=True), True),
    ],
)
def test_when_a_command_is_enabled(command_id: str, facts: MenuFacts, expected: bool) -> None:
    (command,) = (each for each in all_commands() if each.id == command_id)
    assert command.when(facts) is expected


def test_the_menus_are_those_of_a_mac() -> None:
    titles = [menu.title.replace("&", "") for menu in MENUS]
    assert titles == ["File", "Edit", "View", "Chat", "Window", "Help"]
    window = {each.title for group in MENUS[4].groups for each in group}
    assert {"Minimize", "Zoom", "Bring All to Front"} <= window
    rows = {each.submenu or each.id for group in MENUS[2].groups for each in group}
    assert len(rows) <= 9  # a menu that is taken in at a glance
    assert [each.id for each in all_commands() if each.act is None] == ["about"]


# Keys of macOS itself, which a program never gets (Apple's list of keyboard shortcuts).
OF_MACOS = {
    "Ctrl+Alt+D", "Ctrl+Meta+D", "Ctrl+H", "Ctrl+Alt+H", "Ctrl+Space", "Ctrl+Alt+Space", "Ctrl+Meta+Space",
    "Ctrl+Meta+Q", "Ctrl+Shift+Q", "Ctrl+Alt+Esc", "Ctrl+Tab", "Ctrl+`", "Ctrl+Shift+3", "Ctrl+Shift+4",
    "Ctrl+Shift+5", "Ctrl+Alt+F5", "Meta+Up", "Meta+Down", "Meta+Left", "Meta+Right", "F11",
}  # fmt: skip


def test_on_a_mac_no_key_and_no_item_is_the_systems_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    source = importlib.util.find_spec("app.shell.commands")
    assert source is not None
    assert source.loader is not None
    on_a_mac: Any = importlib.util.module_from_spec(source)
    monkeypatch.setitem(sys.modules, source.name, on_a_mac)  # dataclasses look their module up
    source.loader.exec_module(on_a_mac)
    commands = on_a_mac.all_commands()
    assert not {key for each in commands for key in each.keys} & OF_MACOS
    # macOS adds “Enter Full Screen” to the menu View.
    assert "full_screen" not in [each.id for each in commands]
    assert next(each for each in commands if each.id == "help").keys == ("Ctrl+?",)


@pytest.mark.parametrize(("platform", "typed"), [("darwin", True), ("linux", False)])
def test_option_types_characters_on_a_mac(
    monkeypatch: pytest.MonkeyPatch, platform: str, typed: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    pressed = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_At, Qt.KeyboardModifier.AltModifier, "@")
    assert is_typing(pressed) is typed


def test_the_edit_menu_reaches_the_text_of_a_number(qtbot: QtBot) -> None:
    number = QSpinBox(maximum=99, value=42)
    qtbot.addWidget(number)
    number.show()
    number.activateWindow()
    number.setFocus()
    qtbot.waitUntil(number.hasFocus)
    commands: Any = None  # these need none
    for name in ("select_all", "cut"):
        next(each for each in all_commands() if each.id == name).act(commands)
    assert number.lineEdit().text() == ""
