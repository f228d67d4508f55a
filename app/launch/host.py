"""Host: connects one window with the desktop: sleep, single instance, opened files, About.

Created with the window and stopped with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt

from app.launch.application import Application
from app.launch.instance import Instance
from app.launch.macos import follow
from app.session.turn.link_state import Link
from app.shell.window import MainWindow
from app.shell.windows import Screens
from core.system.macos import Activity, Awake, system_activity

if TYPE_CHECKING:
    from app.features.about import AboutWindow

ANSWERING = "Draftlight is answering"


class Host(QObject):
    """`activity` keeps the system awake (None: the system's own). `instance` reports later starts."""

    def __init__(
        self,
        application: Application,
        window: MainWindow,
        activity: Activity | None = None,
        instance: Instance | None = None,
    ) -> None:
        super().__init__(window)
        self._application = application
        self._window = window
        self.awake = Awake(activity or system_activity(), ANSWERING)
        window.controller.link_changed.connect(self._follow)
        window.menu_actions.provide("about", self.show_about)
        self._screens = Screens(application, self)
        self._instance = instance
        if instance:
            instance.hear(self._asked)
        window.closing_begun.connect(self._leave)
        application.opened.hand_to(self._attach)
        application.on_quit = window.close

    def stop(self) -> None:
        """Release everything after the window closed."""
        self._leave()
        self._application.on_quit = None
        self._screens.stop()
        self.awake.release()

    def show_about(self) -> AboutWindow:
        """Open the About window. It is deleted when closed, at the latest with the main window."""
        from app.features.about import AboutWindow

        about = AboutWindow(self._window)
        about.show()
        return about

    def _leave(self) -> None:
        """A window that closes is hidden already and accepts no more files."""
        if self._instance:
            self._instance.turn_away()
        self._application.opened.hand_to(None)

    def _follow(self, link: Link) -> None:
        follow(self.awake, link.phase, serving=link.serving)

    def _asked(self, paths: list[Path]) -> None:
        """Handle a second start of Draftlight."""
        self._show_window()
        for path in paths:
            self._application.opened.add(path)

    def _show_window(self) -> None:
        window = self._window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.raise_()
        window.activateWindow()

    def _attach(self, paths: list[Path]) -> None:
        self._show_window()
        self._window.views.composer.take_files(paths)
