"""Presets in the real window: taken, changed, saved, deleted, kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QInputDialog

from app.launch.scenario import ask
from app.session.chats.presets import BUILT_IN, chosen, name_of
from app.shell.window import MainWindow
from core.events import Attachment
from core.settings import Settings, assign, read
from tests.app.stage import click, last, play, ready, until


def choose(window: MainWindow, name: str) -> None:
    """As a person does: by the keyboard."""
    popup = window.views.inspector.presets.popup
    popup.setFocus()
    rows = [popup.itemText(row) for row in range(popup.count())]
    steps = rows.index(name) - popup.currentIndex()
    for _ in range(abs(steps)):
        QTest.keyClick(popup, Qt.Key.Key_Down if steps > 0 else Qt.Key.Key_Up)


@pytest.mark.parametrize("preset", BUILT_IN, ids=lambda preset: preset.name)
def test_each_of_ours_is_allowed_and_known_again(preset: object) -> None:
    assert preset in BUILT_IN
    settings = chosen(preset, Settings())  # type: ignore[arg-type]
    for override in preset.overrides:  # type: ignore[attr-defined]
        assert read(settings, override.key) == override.value
    assert name_of(settings, Settings(), ()) == preset.name  # type: ignore[attr-defined]


def test_taking_one_changes_the_chat_and_no_other(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        choose(window, "Translation")
        inspector = window.views.inspector
        assert inspector.settings.chat.system_prompt.startswith("Translate the text")
        assert inspector.presets.popup.value == "Translation"
        assert not inspector.presets.save_button.isVisible()
        ask(window, "write 3")
        await ready(window)
        finished = last(window).finished
        assert finished
        assert finished.effective.settings.sampling.max_tokens == 4096
        window.controller.chat.start()
        assert inspector.settings == Settings()
        assert inspector.presets.popup.currentText() == "Default"

    play(qapp, scene)


def test_ones_own_is_saved_kept_and_deleted(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QInputDialog, "getText", lambda *given: ("  My  tone ", True))

    async def first(window: MainWindow) -> None:
        await ready(window)
        inspector = window.views.inspector
        inspector.change_settings(assign(inspector.settings, "chat.system_prompt", "Be brief."))
        assert inspector.presets.popup.currentText() == "Custom"
        await click(inspector.presets.save_button)
        assert inspector.presets.popup.value == "My tone"

    async def second(window: MainWindow) -> None:
        await ready(window)
        window.controller.chat.start()
        choose(window, "My tone")
        inspector = window.views.inspector
        assert inspector.settings.chat.system_prompt == "Be brief."
        await click(inspector.presets.delete_button)
        assert inspector.presets.popup.currentText() == "Custom"
        assert inspector.settings.chat.system_prompt == "Be brief."
        assert inspector.presets.popup.findText("My tone") < 0

    play(qapp, first, folder=tmp_path)
    play(qapp, second, folder=tmp_path)


def test_usual_shares_to_keep_are_a_click_and_say_what_they_mean(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        inspector = window.views.inspector
        inspector.section("prefill").set_open(True)
        inspector.change_settings(assign(inspector.settings, "prefill.mode", "on"))
        bar = inspector.keep_bar
        assert bar.estimate.isHidden()
        await click(bar.buttons[30.0])
        assert inspector.settings.prefill.keep_pct == 30
        assert inspector.field("prefill.keep_pct").control.editor.value == 30  # type: ignore[attr-defined]
        window.views.composer.attach(Attachment("long.txt", "word " * 4000))
        await until(lambda: bar.estimate.isVisible())
        assert bar.estimate.text().startswith("Reads about ")
        said = bar.estimate.text()
        await click(bar.buttons[50.0])
        assert bar.estimate.text() != said
        await click(bar.buttons[100.0])
        assert bar.estimate.text().startswith("Reads all ")
        window.views.composer.clear()
        await until(lambda: bar.estimate.isHidden())

    play(qapp, scene)
