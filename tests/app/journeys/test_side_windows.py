"""The windows beside the chat: Escape closes each of them, and the chat window stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.features.side_window import SideWindow
from app.shell.window import MainWindow
from tests.app.stage import play, ready

_NAMES = (
    *("models", "library", "tables", "lab", "server"),
    *("settings", "shortcuts", "deleted"),
)


@pytest.mark.parametrize("name", _NAMES)
def test_escape_closes_it(
    qapp: QApplication, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))

    async def scene(window: MainWindow) -> None:
        await ready(window)
        beside = window.windows.show(name)
        assert isinstance(beside, SideWindow)
        assert beside.isVisible()
        assert beside.accessibleName()
        QTest.keyClick(beside.focusWidget() or beside, Qt.Key.Key_Escape)
        assert not beside.isVisible()
        assert window.isVisible()

    play(qapp, scene)
