"""The stage: what makes a scene fail."""

from __future__ import annotations

import time

import pytest
from PySide6.QtWidgets import QApplication

from app.shell.window import MainWindow
from tests.app.stage import BLOCK_MS, play, ready

pytestmark = pytest.mark.quiet


def _compute(ms: float) -> None:
    until_s = time.thread_time() + ms / 1000
    while time.thread_time() < until_s:
        pass


def test_a_scene_that_blocks_the_ui_thread_fails_with_the_place(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        _compute(20 * BLOCK_MS)

    with pytest.raises(AssertionError, match=r"(?s)The UI thread was blocked for \d{4} ms.*_compute"):
        play(qapp, scene)


def test_waiting_does_not_count(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        time.sleep(20 * BLOCK_MS / 1000)

    play(qapp, scene)
