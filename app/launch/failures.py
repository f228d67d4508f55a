"""Unhandled exceptions: all are written to stderr and to a log file, the first is shown in the banner."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Signal

from app.session.trouble import Trouble, Until
from core.system.private import opener

if TYPE_CHECKING:
    from app.launch.opening import Scenario
    from app.shell.window import MainWindow

TITLE = "Something in this window failed."
TEXT = "If it does not work as before, quit Draftlight and open it again. The log is {log}."
_LOG = logging.getLogger("draftlight.window")
_FILE = "window.log"
_MOST_BYTES = 1_000_000


class Failures(QObject):
    """Logs from its creation to the end of the process, in `folder` and on stderr, from all threads."""

    _failed = Signal(str)  # the traceback

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / _FILE
        self._window: MainWindow | None = None
        file = _PrivateFile(self._path, maxBytes=_MOST_BYTES, backupCount=1, encoding="utf-8", delay=True)
        logging.basicConfig(handlers=(file, logging.StreamHandler()), format="%(asctime)s %(message)s")
        # Queued: the failure may be one of painting.
        self._failed.connect(self._show, Qt.ConnectionType.QueuedConnection)
        sys.excepthook = self._log
        threading.excepthook = lambda failed: self._log(*failed[:3])  # type: ignore[arg-type]

    def shown(self, scenario: Scenario) -> Scenario:
        """Returns `scenario` with the failures of the event loop logged, too, and shown in its window."""

        async def watched(window: MainWindow) -> int:
            asyncio.get_running_loop().set_exception_handler(self._on_loop)
            self._window = window
            try:
                return await scenario(window)
            finally:
                self._window = None

        return watched

    def _on_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is None:
            _LOG.error("%s", context["message"])
        else:
            self._log(type(error), error, error.__traceback__)

    def _log(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _LOG.critical("An exception was not handled.", exc_info=(kind, error, trace))
        self._failed.emit("".join(traceback.format_exception(kind, error, trace)))

    def _show(self, trace: str) -> None:
        if self._window is not None:
            trouble = Trouble(
                TITLE, TEXT.format(log=self._path), log=tuple(trace.split("\n")), until=Until.OVER
            )
            self._window.controller.trouble.show(trouble)
            self._window = None  # once: it may fail again with each movement of the mouse


class _PrivateFile(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        # Without blocking, should it be a pipe that nothing reads.
        def unblocked(path: str, flags: int) -> int:
            return opener(path, flags | os.O_NONBLOCK)

        return open(self.baseFilename, "a", encoding=self.encoding, opener=unblocked)
