"""Hands: a person's mouse and keyboard on an X display, through the X server, by xdotool.

Where to click is asked of the widgets; that something was clicked they learn from X alone.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QScrollArea, QWidget

from app.shell.window import MainWindow
from core.system.paths import cache_dir


class Hands:
    """Everything takes its time, as with a person; `until` waits for what comes of it."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window

    async def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """The left button, in the middle of `widget` or at a point of it."""
        assert widget.isVisible(), f"{widget.accessibleName()} cannot be seen"
        self._scroll_to(widget)
        spot = widget.mapToGlobal(at or widget.rect().center())
        await self._do("mousemove", str(spot.x()), str(spot.y()), "click", "1")

    async def type(self, text: str) -> None:
        """Letter by letter, into whatever has the focus."""
        await self._do("type", "--delay", "12", "--", text)

    async def press(self, *keys: str) -> None:
        """Keys as xdotool names them, one after the other."""
        await self._do("key", "--delay", "40", *keys)

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

    async def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
        """Wait; the window lives on meanwhile."""
        end_s = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end_s:
                self.window.grab().save(str(cache_dir().parent / "failed.png"))
                trouble = self.window.views.banner.trouble
                raise AssertionError(f"{what}: not within {timeout_s:.0f} s. {trouble or ''}")
            await asyncio.sleep(0.02)

    def _scroll_to(self, widget: QWidget) -> None:
        """As the wheel would, if a panel shows another part of itself."""
        above = widget.parentWidget()
        while above is not None and not isinstance(above, QScrollArea):
            above = above.parentWidget()
        if isinstance(above, QScrollArea):
            above.ensureWidgetVisible(widget)

    async def _do(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec("xdotool", *arguments)
        assert await process.wait() == 0
        await asyncio.sleep(0.15)  # X delivers, Qt handles
