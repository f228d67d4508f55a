"""Hands: a person's mouse and keyboard on an X display, through the X server, by xdotool.

Where to click is asked of the widgets; that something was clicked they learn from X alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAccessible, QAction, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QScrollArea, QWidget

from app.shell.window import MainWindow
from core.system.paths import cache_dir

# Nothing here is waited for by the clock: this long nothing may have come from the worker at all.
PATIENCE_S = 240.0
PICTURES = "DRAFTLIGHT_E2E_PICTURES"
_STARTED_S = time.monotonic()


class Hands:
    """Everything takes its time, as with a person; `until` waits for what comes of it."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        self._pictures = os.environ.get(PICTURES)
        self._taken = 0

    def step(self, words: str) -> None:
        """Say what was done, and keep a picture of the screen, if there is a folder for it."""
        print(f"{time.monotonic() - _STARTED_S:6.1f} s  {words}", flush=True)
        if self._pictures:
            self._taken += 1
            name = re.sub(r"[^a-z0-9]+", "-", words.partition(":")[0].lower()).strip("-")[:60]
            self._take_picture(Path(self._pictures) / f"{self._taken:02d}-{name}.png")

    def _take_picture(self, file: Path) -> None:
        """Keep the screen as it is now: what was done is laid out and painted first, not at Qt's leisure."""
        QApplication.sendPostedEvents()
        for widget in QApplication.topLevelWidgets():
            if widget.isVisible():
                widget.repaint()
        assert QGuiApplication.primaryScreen().grabWindow(0).save(str(file))

    async def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """The left button, in the middle of `widget` or at a point of it."""
        assert widget.isVisible(), f"{widget.accessibleName()} cannot be seen"
        self._scroll_to(widget)
        await self._laid_out(widget)
        spot = widget.mapToGlobal(at or widget.rect().center())
        await self._do("mousemove", str(spot.x()), str(spot.y()), "click", "1")

    async def type(self, text: str) -> None:
        """Letter by letter, into whatever has the focus."""
        await self._do("type", "--delay", "12", "--", text)

    async def press(self, *keys: str) -> None:
        """Keys as xdotool names them, one after the other."""
        await self._do("key", "--delay", "40", *keys)

    async def choose(self, menu: QMenu, action: QAction) -> None:
        assert action.isEnabled(), f"{action.text()} cannot be chosen"
        await self.click(menu, menu.actionGeometry(action).center())

    async def copy_elsewhere(self, text: str) -> asyncio.subprocess.Process:
        """Another program puts `text` on the clipboard and lives until it is ended."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
            file.write(text)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.app.e2e.other_program", file.name, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout
        assert await process.stdout.readline() == b"copied\n"
        Path(file.name).unlink()
        return process

    async def until(self, condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait, as long as the worker gets on; the window lives on meanwhile."""
        heard, end_s = self._heard(), time.monotonic() + timeout_s
        while not condition():
            if self._heard() != heard:
                heard, end_s = self._heard(), time.monotonic() + timeout_s
            if time.monotonic() > end_s:
                folder = self._pictures or cache_dir().parent
                self._take_picture(Path(folder) / "failed.png")
                trouble = self.window.views.banner.trouble
                raise AssertionError(f"{what}: not yet; nothing came for {timeout_s:.0f} s. {trouble or ''}")
            await asyncio.sleep(0.02)

    def _heard(self) -> tuple[object, ...]:
        """What changes while the worker gets on: its phase, what is read, what is written."""
        controller, reading = self.window.controller, self.window.views.strip.first_token
        turns = controller.chats.open.turns
        face = QAccessible.queryAccessibleInterface(reading)
        written = len(turns[-1].answer.tokens) if turns else 0
        return controller.link.phase, face.text(QAccessible.Text.Description), written

    def _scroll_to(self, widget: QWidget) -> None:
        """As the wheel would, if a panel shows another part of itself."""
        above = widget.parentWidget()
        while above is not None and not isinstance(above, QScrollArea):
            above = above.parentWidget()
        if isinstance(above, QScrollArea):
            above.ensureWidgetVisible(widget)

    async def _laid_out(self, widget: QWidget) -> None:
        place = None
        while place != (place := widget.mapToGlobal(QPoint())):
            await asyncio.sleep(0.2)

    async def _do(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec("xdotool", *arguments)
        assert await process.wait() == 0
        await asyncio.sleep(0.15)  # X delivers, Qt handles
