"""The windows beside the chat: each opens in its first field or list; Escape and Ctrl+W close it alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QDialog

from app.features.about import AboutWindow
from tests.app.stage import Stage, press, until

CONTROL = Qt.KeyboardModifier.ControlModifier

NAMES = ("models", "library", "tables", "lab", "server", "settings", "help", "deleted", "tools")


async def test_the_keys_close_each_side_window_and_what_covers_the_chat(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    window = await stage.ready()
    for name in NAMES:
        for close in (Qt.Key.Key_Escape, Qt.Key.Key_W):
            beside = window.windows.show(name)
            assert beside.accessibleName(), name
            await until(lambda beside=beside: QApplication.activeWindow() is beside)
            assert not isinstance(QApplication.focusWidget(), QAbstractButton | QComboBox | None), name
            if close == Qt.Key.Key_W:
                await press(beside, close, CONTROL)
            else:
                QTest.keyClick(beside.focusWidget() or beside, close)
            assert not beside.isVisible(), name
            assert window.isVisible()

    window.activateWindow()
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
