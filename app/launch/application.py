"""Application: the Qt application, what the desktop asks of it and not of a window, and its collector.

Overrides `event()` instead of filtering: a filter on the application would see every event of
every widget. macOS asks to open files, possibly before there is a window, and to quit (⌘Q, the
Dock, logging out). Qt's own answer to quitting ends the loop at once, with the worker still
running; so while somebody minds the end, it is asked for and Qt is told to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from app.launch.collector import Collector
from app.launch.opened_files import OpenedFiles


class Application(QApplication):
    """`opened` keeps files until they are taken. `on_quit` is called instead of quitting, if set."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(list(arguments))
        self._collector = Collector(self)
        self.opened = OpenedFiles(self)
        self.on_quit: Callable[[], object] | None = None

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent):
            # A link comes as such an event too, without a file.
            if event.file():
                self.opened.add(Path(event.file()))
            return True
        if event.type() == QEvent.Type.Quit and self.on_quit is not None:
            event.ignore()
            self.on_quit()
            return True
        return bool(super().event(event))
