"""Host: connects one window with the desktop: sleep, single instance, opened files, About, updates.

Created with the window and stopped with it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt

from app.features.updates import NO_ADDRESS, Release, UpdateCheck, get_version
from app.launch.application import Application
from app.launch.instance import Instance
from app.launch.macos import Activity, Awake, system_activity
from app.richtext.canvas_menu import open_outside
from app.session.turn.link_state import Link
from app.shell.window import MainWindow
from app.shell.windows import Screens
from app.theme.theme import Theme

if TYPE_CHECKING:
    from app.features.about import AboutWindow

ANSWERING = "Draftlight is answering"


class Host(QObject):
    """`activity` keeps the system awake (None: the system's own). `instance` reports later starts. `releases`
    is the address that lists newer versions, if the check is enabled (None: the build's own).
    """

    def __init__(
        self,
        application: Application,
        window: MainWindow,
        theme: Theme,
        activity: Activity | None = None,
        instance: Instance | None = None,
        releases: str | None = None,
    ) -> None:
        super().__init__(window)
        self._application = application
        self._window = window
        self._theme = theme
        self.awake = Awake(activity or system_activity(), ANSWERING)
        window.controller.link_changed.connect(self._follow)
        window.menu_actions.provide("about", self.show_about)
        self.updates = UpdateCheck(
            window.app_settings, window.controller.home.preferences, self, address=releases
        )
        self.updates.found.connect(self._offer_update)
        window.app_settings.hold(self._held)
        self.updates.look_if_due()
        self._screens = Screens(application, self)
        self._reading: asyncio.Task[None] | None = None  # the licences of the About window
        self._instance = instance
        if instance:
            instance.hear(self._asked)
        application.opened.hand_to(self._attach)
        application.on_quit = window.close

    def stop(self) -> None:
        """Release everything after the window closed."""
        if self._instance:
            self._instance.hear(None)
        self._application.opened.hand_to(None)
        self._application.on_quit = None
        self._stop_reading()
        self._screens.stop()
        self.awake.release()

    def show_about(self) -> AboutWindow:
        """Open the About window. It is deleted when closed, at the latest with the main window."""
        from app.features.about import AboutWindow

        releases = self.updates.address if self.updates.is_on else ""
        about = AboutWindow(self._theme, self._window, releases=releases)
        about.show()
        self._stop_reading()
        self._reading = asyncio.ensure_future(about.read_licences())
        about.finished.connect(self._stop_reading)
        return about

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def _held(self) -> dict[str, str]:
        return {} if self.updates.address else {"updates.check": NO_ADDRESS}

    def _offer_update(self, release: Release) -> None:
        """Show the command that opens the page of the newer version."""
        action = self._window.menu_actions["update"]
        if not action.isVisible():
            action.setText(get_version(release.version))
            self._window.menu_actions.provide("update", lambda: open_outside(release.html_url))

    def _follow(self, link: Link) -> None:
        self.awake.follow(link.phase, serving=bool(link.served))

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
