"""Presets in the real window: taken, changed, saved, deleted, kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.controls.buttons import Button
from app.shell.window import MainWindow
from core.events import Attachment
from core.prefill.forecast import ReadingForecast
from core.settings import Settings
from tests.app.stage import Stage, asked, click, last, set_value, type_name, until


def choose(window: MainWindow, name: str) -> None:
    popup = window.views.inspector.presets.popup
    popup.setFocus()
    rows = [popup.itemText(row) for row in range(popup.count())]
    steps = rows.index(name) - popup.currentIndex()
    for _ in range(abs(steps)):
        QTest.keyClick(popup, Qt.Key.Key_Down if steps > 0 else Qt.Key.Key_Up)


def act(window: MainWindow, words: str) -> None:
    menu = window.views.inspector.presets.menu()
    action = next(each for each in menu.actions() if each.text() == words.replace("&", "&&"))
    assert action.isEnabled(), words
    action.trigger()
    menu.deleteLater()


async def test_one_is_taken_own_settings_stay_and_ones_own_is_changed_and_renamed(window: MainWindow) -> None:
    choose(window, "Translation")
    inspector = window.views.inspector
    assert inspector.settings.chat.system_prompt.startswith("Translate the text")
    assert inspector.presets.popup.value == "Translation"
    assert not inspector.presets.save_button.isVisible()
    await asked(window, "write 3")
    finished = last(window).finished
    assert finished.effective.settings.sampling.max_tokens == 4096
    window.controller.chat.start()
    assert inspector.settings == Settings()
    assert inspector.presets.popup.currentText() == "Default"

    window.controller.chat.start()
    inspector = window.views.inspector
    set_value(window, "chat.system_prompt", "Be brief.")
    popup = inspector.presets.popup
    assert popup.currentText() == "Custom"
    popup.activated.emit(popup.currentIndex())
    assert inspector.settings.chat.system_prompt == "Be brief."
    choose(window, "Default")
    assert inspector.settings == Settings()

    window.controller.chat.start()
    inspector, popup = window.views.inspector, window.views.inspector.presets.popup
    set_value(window, "chat.system_prompt", "Be brief.")
    act(window, "Save as Preset…")
    await type_name(window, "Mine & yours")
    set_value(window, "chat.system_prompt", "Be kind.")
    assert popup.currentText() == "Custom"
    act(window, "Save changes to “Mine & yours”")
    assert popup.currentText() == "Mine & yours"
    set_value(window, "chat.system_prompt", "Be long.")
    # A name that is taken is said, and what has it stays.
    act(window, "Save as Preset…")
    await type_name(window, "Mine & yours")
    assert "“Mine & yours” already" in window.views.banner.trouble.title
    choose(window, "Mine & yours")
    assert inspector.settings.chat.system_prompt == "Be kind."
    act(window, "Rename…")
    await type_name(window, "My other tone")
    assert popup.currentText() == "My other tone"
    assert popup.findData("Mine & yours") < 0
    window.controller.chat.start()
    assert popup.currentText() == "Default"
    choose(window, "My other tone")
    assert inspector.settings.chat.system_prompt == "Be kind."


async def test_ones_own_is_saved_kept_and_deleted(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    inspector = window.views.inspector
    set_value(window, "chat.system_prompt", "Be brief.")
    assert inspector.presets.popup.currentText() == "Custom"
    await click(inspector.presets.save_button)
    await type_name(window, "  My  tone ")
    assert inspector.presets.popup.value == "My tone"
    window = await stage.ready(folder=tmp_path)
    window.controller.chat.start()
    choose(window, "My tone")
    inspector = window.views.inspector
    assert inspector.settings.chat.system_prompt == "Be brief."
    act(window, "Delete")
    assert inspector.presets.popup.currentText() == "Custom"
    assert inspector.settings.chat.system_prompt == "Be brief."
    assert inspector.presets.popup.findText("My tone") < 0


async def test_the_estimate_of_what_is_read_is_under_reading(window: MainWindow) -> None:
    """Keep has one control, its slider below the choice of the reading."""

    inspector = window.views.inspector
    set_value(window, "prefill.mode", "on")
    section = inspector.open_section("basics")
    assert not [button for button in section.findChildren(Button) if "%" in button.text()]
    keep = inspector.field("prefill.keep_pct").control.editor
    estimate = inspector.estimate
    assert inspector.section("basics").isAncestorOf(estimate)
    assert not estimate.text()
    inspector.advanced.set_open(True)
    await asyncio.sleep(0.2)
    before = places(inspector)
    window.views.composer.attach(Attachment("long.txt", "word " * 4000))
    await until(lambda: estimate.text().startswith("Reads about "))
    said, many = estimate.text(), ReadingForecast(600_000, 100_848, 750.0, all_fits=False)
    for will in (ReadingForecast(0, 0), many, ReadingForecast(600_000, 100_848, 750.0, 1500.0)):
        inspector.show_estimate(will)
        await asyncio.sleep(0.05)
        assert places(inspector) == before, "what a person points at stays while a draft is counted"
    keep.set_value(50.0)
    assert estimate.text() != said
    keep.set_value(100.0)
    assert estimate.text().startswith("Reads all ")
    window.views.composer.clear()
    await until(lambda: not estimate.text())


def places(panel: QWidget) -> dict[str, QPoint]:
    controls = (each for each in panel.findChildren(QWidget) if each.isVisible() and each.accessibleName())
    return {each.accessibleName(): each.mapTo(panel, QPoint(0, 0)) for each in controls}
