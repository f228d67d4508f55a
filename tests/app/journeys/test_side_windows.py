"""The windows beside the chat: each opens in its first field or list; Escape and Ctrl+W close it alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QDialog

from app.features.about import AboutWindow
from app.features.side_window import SideWindow
from app.shell.window import MainWindow
from core.events import Attachment
from tests.app.stage import play, press, ready, until

CONTROL = Qt.KeyboardModifier.ControlModifier

_NAMES = (
    *("models", "library", "tables", "lab", "server"),
    *("settings", "help", "deleted"),
)


@pytest.mark.parametrize("name", _NAMES)
def test_it_opens_in_a_field_and_escape_and_the_key_close_it(
    qapp: QApplication, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))

    async def scene(window: MainWindow) -> None:
        await ready(window)
        beside = window.windows.show(name)
        assert isinstance(beside, SideWindow)
        assert beside.isVisible()
        assert beside.accessibleName()
        await until(lambda: QApplication.activeWindow() is beside)
        assert not isinstance(QApplication.focusWidget(), QAbstractButton | QComboBox | None)
        QTest.keyClick(beside.focusWidget() or beside, Qt.Key.Key_Escape)
        assert not beside.isVisible()
        assert window.isVisible()
        window.windows.show(name)
        await until(lambda: QApplication.activeWindow() is beside)
        await press(beside, Qt.Key.Key_W, CONTROL)
        assert not beside.isVisible()
        assert window.isVisible()

    play(qapp, scene)


async def test_every_side_window_is_tried(window: MainWindow) -> None:
    assert set(window.windows.names) == set(_NAMES)


async def test_the_key_closes_what_covers_the_chat_before_the_chat(window: MainWindow) -> None:
    await ready(window)
    composer = window.views.composer
    composer.attach(Attachment("a.txt", "words"))
    composer.chips.chips[0].click()
    assert composer.close_preview()
    composer.chips.chips[0].click()
    await press(window, Qt.Key.Key_W, CONTROL)
    assert not composer.close_preview()
    assert window.isVisible()
    window.controller.racing.toggle()
    await until(lambda: window.controller.racing.open)
    await press(window, Qt.Key.Key_W, CONTROL)
    assert not window.controller.racing.open
    assert window.isVisible()
    sheet = QDialog(window)
    sheet.open()
    await until(lambda: QApplication.activeWindow() is sheet)
    await press(sheet, Qt.Key.Key_W, CONTROL)
    assert window.isVisible()
    sheet.close()
    about = AboutWindow(window)
    about.show()
    about.activateWindow()
    await until(lambda: QApplication.activeWindow() is about)
    await press(about, Qt.Key.Key_W, CONTROL)
    assert window.isVisible()
    await until(lambda: not window.findChildren(AboutWindow))
