"""The settings of the app: each has its field, applies at once, and is there again next time."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.features.settings.window import SettingsWindow
from app.launch.scenario import ask
from app.shell.window import MainWindow
from app.theme.theme import theme
from core.settings import Settings, WindowSettings, assign, assign_all, declared
from tests.app.stage import click, last, play, press, ready


@pytest.fixture
def settings(qtbot: QtBot) -> SettingsWindow:
    settings = SettingsWindow()
    qtbot.addWidget(settings)
    settings.show()
    return settings


def test_every_setting_has_a_field_with_a_name(settings: SettingsWindow) -> None:
    for setting in declared(WindowSettings):
        if setting.group == "server":
            continue  # they are in the server's window
        editor = settings.field(setting.key).control.editor
        assert editor.accessibleName() == setting.title
        assert (editor.focusProxy() or editor).focusPolicy() & Qt.FocusPolicy.TabFocus
        assert settings.field(setting.key).width() <= settings.width()


def test_a_wish_is_told_and_what_came_of_it_is_shown(qtbot: QtBot, settings: SettingsWindow) -> None:
    learn = settings.field("allowed.learn").control.editor
    with qtbot.waitSignal(settings.changed) as told:
        qtbot.mouseClick(learn, Qt.MouseButton.LeftButton)
    assert told.args == ["allowed.learn", False]
    assert settings.field("allowed.learn").note == "Off in all chats, whatever their settings."
    dark = assign(WindowSettings(), "look.scheme", "dark")
    settings.show_settings(dark)
    scheme = settings.field("look.scheme").control.editor
    assert scheme.value == "dark"
    # What is shown is what is in force, so the wish above is not.
    assert learn.isChecked()


def test_a_zero_says_what_it_means(settings: SettingsWindow) -> None:
    settings.show_settings(WindowSettings())
    assert settings.field("memory.unload_minutes").note == "Never: the model stays in memory."
    settings.show_settings(assign(WindowSettings(), "memory.unload_minutes", 10))
    assert settings.field("memory.unload_minutes").note == ""


def test_reset_only_if_there_is_something_to_reset(qtbot: QtBot, settings: SettingsWindow) -> None:
    assert not settings.reset_button.isEnabled()
    assert not settings.defaults_button.isEnabled()
    settings.show_settings(assign(WindowSettings(), "look.zoom_pct", 125))
    settings.show_defaults(2)
    with qtbot.waitSignal(settings.reset_button.clicked):
        qtbot.mouseClick(settings.reset_button, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(settings.defaults_button.clicked):
        qtbot.mouseClick(settings.defaults_button, Qt.MouseButton.LeftButton)


CTRL = Qt.KeyboardModifier.ControlModifier
KEY = Qt.Key


async def opened(window: MainWindow) -> SettingsWindow:
    await press(window, KEY.Key_Comma, CTRL)
    found = window.windows.find("settings")
    assert found.isVisible()
    return found


def choose(settings: SettingsWindow, key: str, value: str) -> None:
    popup = settings.field(key).control.editor
    popup.set_value(value)


@pytest.mark.sweep
def test_the_look_is_in_force_at_once_and_remembered(qapp: QApplication, tmp_path: Path) -> None:
    async def first(window: MainWindow) -> None:
        await ready(window)
        settings = await opened(window)
        choose(settings, "look.scheme", "dark")
        assert theme.is_dark
        choose(settings, "look.token_colors", "off")
        assert window.views.header.token_colors.value == "off"
        # The same setting in the header: one truth.
        await press(window, KEY.Key_T, CTRL)
        assert window.app_settings.now.look.token_colors == "drafts"
        popup = settings.field("look.token_colors").control.editor
        assert popup.value == "drafts"

    async def again(window: MainWindow) -> None:
        assert window.views.header.token_colors.value == "drafts"
        assert window.app_settings.now.look.scheme == "dark"
        settings = await opened(window)
        await click(settings.reset_button)
        assert window.app_settings.now == WindowSettings()
        assert window.views.header.token_colors.value == "drafts"

    play(qapp, first, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


async def test_command_return_sends_and_learning_off_reaches_the_worker(window: MainWindow) -> None:
    await ready(window)
    settings_window = await opened(window)
    choose(settings_window, "writing.send_keys", "command_return")
    window.activateWindow()
    window.views.composer.edit.setFocus()
    await press(window, KEY.Key_W)
    await press(window, KEY.Key_Return)
    await press(window, KEY.Key_3)
    assert window.views.composer.text == "w\n3"
    assert window.controller.chats.open.turns == ()
    await press(window, KEY.Key_Return, CTRL)
    assert window.controller.chats.open.turns[-1].user.content == "w\n3"
    await ready(window)
    window.app_settings.set("writing.send_keys", "return")

    # Learning is turned off for all chats.
    settings_window.close()
    window.controller.chat.start()
    field = window.views.inspector.field("tables.learn")
    assert window.views.inspector.settings.tables.learn
    window.app_settings.set("allowed.learn", False)
    assert not field.control.isEnabled()
    assert field.note == "Off for all chats, in Settings."
    ask(window, "write 3")
    await ready(window)
    finished = last(window).finished
    assert finished
    assert not finished.effective.settings.tables.learn
    # The chat's own wish is kept, and holds again.
    window.app_settings.set("allowed.learn", True)
    assert field.control.isEnabled()
    ask(window, "write 3")
    await ready(window)
    finished = last(window).finished
    assert finished
    assert finished.effective.settings.tables.learn


def test_the_defaults_of_new_chats_are_taken_back(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        pill = window.views.composer.pill
        most_tokens = pill.limit_tokens
        warm = assign_all(
            Settings(), [("sampling.temperature", 0.7), ("prefill.context_tokens", most_tokens // 2)]
        )
        window.views.inspector.defaults_changed.emit(warm, frozenset())
        window.controller.chat.start()
        assert pill.limit_tokens == most_tokens // 2
        settings = await opened(window)
        assert settings.defaults_button.isEnabled()
        await click(settings.defaults_button)
        assert not settings.defaults_button.isEnabled()
        assert window.controller.home.preferences.defaults == Settings()
        assert window.views.inspector.settings == Settings()
        assert pill.limit_tokens == most_tokens

    play(qapp, scene, folder=tmp_path)
