"""The Qt application: its name and icon, desktop events that are not a window's, and its garbage collector.

Overrides `event()` instead of filtering: a filter on the application would see every event of
every widget. macOS asks to open files, possibly before there is a window, and to quit (⌘Q, the
Dock, logging out). Qt's own answer to quitting ends the loop at once, with the worker still
running; so while somebody minds the end, it is asked for and Qt is told to wait.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent, QIcon
from PySide6.QtWidgets import QApplication

from app.launch.collector import Collector
from app.launch.opened_files import OpenedFiles
from app.session import strings
from app.theme.fonts import enlarged_ui_font
from app.theme.icons import APP_ICON

_LOG = logging.getLogger("draftlight.window")


class Application(QApplication):
    """`opened` keeps files until they are taken. `on_quit` is called instead of quitting, if set."""

    def __init__(self, arguments: Sequence[str]) -> None:
        # The app bundle has its own name, and its own icon in all sizes, which the Dock shows.
        from_source = sys.platform == "darwin" and not getattr(sys, "frozen", False)
        if from_source:
            _name_process()
        super().__init__(list(arguments))
        self.setApplicationName(strings.APP_NAME)
        self.setApplicationDisplayName(strings.APP_NAME)
        self.setDesktopFileName("draftlight")
        if from_source or sys.platform != "darwin":
            self.setWindowIcon(QIcon(str(APP_ICON)))
        # Before any widget is made: sizes must not depend on the desktop's font.
        self.setFont(enlarged_ui_font(13))
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


def _name_process() -> None:
    """Show the app's name in the menu bar of macOS. A failure leaves "Python" there and is logged."""
    from app.launch.macos.objc import Objc, set_bundle_name

    try:
        set_bundle_name(strings.APP_NAME, Objc())
    except (OSError, AttributeError):
        _LOG.warning("The menu bar could not be given the name of the app.", exc_info=True)
