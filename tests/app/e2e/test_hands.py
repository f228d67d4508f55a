"""The pictures of the end-to-end tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QImage

from app.shell.window import MainWindow
from tests.app.e2e.hands import PICTURES, Hands
from tests.app.hand import Hand


async def test_a_picture_shows_what_was_just_done(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PICTURES, str(tmp_path))
    hands, chats = Hands(window), window.views.sidebar.list
    for question in ("First?", "Second?"):
        window.controller.chat.start()
        await Hand(window).ask(question)
    hands.step("two chats")
    window.menu_actions["delete"].trigger()
    hands.step("one deleted")
    await asyncio.sleep(0.3)
    hands.step("later")
    place = QRect(chats.mapToGlobal(QPoint(0, 0)), chats.size())
    two, deleted, later = (QImage(str(each)).copy(place) for each in sorted(tmp_path.glob("*.png")))
    assert two != deleted
    assert deleted == later
