"""The settings of the app: every declared one has its field, and says what a person wishes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.controls.choices import Popup, Switch
from app.features.settings.window import SettingsWindow
from app.theme.theme import Theme
from core.settings import WindowSettings, assign, declared


@pytest.fixture
def window(qtbot: QtBot, theme: Theme) -> SettingsWindow:
    window = SettingsWindow(theme)
    qtbot.addWidget(window)
    window.show()
    return window


def test_every_setting_has_a_field_with_a_name(window: SettingsWindow) -> None:
    for setting in declared(WindowSettings):
        if setting.group == "server":
            continue  # they are in the server's window
        editor = window.field(setting.key).control.editor
        assert editor.accessibleName() == setting.title
        assert (editor.focusProxy() or editor).focusPolicy() & Qt.FocusPolicy.TabFocus
        assert window.field(setting.key).width() <= window.width()


def test_a_wish_is_told_and_what_came_of_it_is_shown(qtbot: QtBot, window: SettingsWindow) -> None:
    learn = window.field("allowed.learn").control.editor
    assert isinstance(learn, Switch)
    with qtbot.waitSignal(window.changed) as told:
        qtbot.mouseClick(learn, Qt.MouseButton.LeftButton)
    assert told.args == ["allowed.learn", False]
    assert window.field("allowed.learn").note == "From no chat, whatever its settings."
    dark = assign(WindowSettings(), "look.scheme", "dark")
    window.show_settings(dark)
    scheme = window.field("look.scheme").control.editor
    assert isinstance(scheme, Popup)
    assert scheme.value == "dark"
    # What is shown is what is in force, so the wish above is not.
    assert learn.isChecked()


def test_reset_only_if_there_is_something_to_reset(qtbot: QtBot, window: SettingsWindow) -> None:
    assert not window.reset_button.isEnabled()
    assert not window.defaults_button.isEnabled()
    window.show_settings(assign(WindowSettings(), "look.zoom_pct", 125))
    window.show_defaults(2)
    with qtbot.waitSignal(window.reset_button.clicked):
        qtbot.mouseClick(window.reset_button, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(window.defaults_button.clicked):
        qtbot.mouseClick(window.defaults_button, Qt.MouseButton.LeftButton)


def test_what_this_build_cannot_do_is_held_and_says_why(window: SettingsWindow) -> None:
    field = window.field("updates.check")
    window.hold({"updates.check": "Not in this build."})
    assert not field.control.isEnabled()
    assert field.note == "Not in this build."
    window.show_settings(WindowSettings())
    assert field.note == "Not in this build."
    window.hold({})
    assert field.control.isEnabled()
    assert field.note == ""
