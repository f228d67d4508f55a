"""Host: joins one window to the desktop it runs on. Made with the window, ended with it.

Knows of the window its composer, its session's phases and how to close it; changes nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt

from app.controllers.update_check import UpdateCheck
from app.launch import strings
from app.launch.application import Application
from app.launch.instance import Instance
from app.launch.macos.awake import Activity, Awake, system_activity
from app.richtext.canvas.canvas_menu import open_outside
from app.session.turn.link_state import Link
from app.shell.screens import Screens
from app.shell.window import MainWindow
from app.theme.theme import Theme
from app.windows.about import strings as about_strings

if TYPE_CHECKING:
    from app.windows.about.updates import Release
    from app.windows.about.window import AboutWindow


class Host(QObject):
    """`activity` keeps the system awake (None: the system's own way); `instance` hears later starts.
    `releases` is where to ask for newer versions, if that is turned on (None: what this build says).
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
        self.awake = Awake(activity or system_activity(), strings.ANSWERING)
        window.controller.link_changed.connect(self._follow)
        window.menu_actions.bind({"about": self.show_about})
        self.updates = UpdateCheck(
            window.app_settings, window.controller.home.preferences, self, address=releases
        )
        self.updates.found.connect(self._offer_update)
        window.app_settings.hold(self._held)
        self.updates.look_if_due()
        self._screens = Screens(application, self)
        self._instance = instance
        if instance:
            instance.hear(self._asked)
        application.opened.hand_to(self._attach)
        application.on_quit = window.close

    def stop(self) -> None:
        """Let go of everything; the window is closed."""
        if self._instance:
            self._instance.hear(None)
        self._application.opened.hand_to(None)
        self._application.on_quit = None
        self._screens.stop()
        self.awake.release()

    def show_about(self) -> AboutWindow:
        """Open it. It deletes itself when it is closed, and with the window at the latest."""
        from app.windows.about.window import AboutWindow

        releases = self.updates.address if self.updates.is_on else ""
        about = AboutWindow(self._theme, self._window, releases=releases)
        about.show()
        return about

    def _held(self) -> dict[str, str]:
        return {} if self.updates.address else {"updates.check": about_strings.NO_ADDRESS}

    def _offer_update(self, release: Release) -> None:
        """In the menu, from where it leads to the page that has it."""
        action = self._window.menu_actions["update"]
        if not action.isVisible():
            action.setText(about_strings.get_version(release.version))
            self._window.menu_actions.bind({"update": lambda: open_outside(release.html_url)})

    def _follow(self, link: Link) -> None:
        self.awake.follow(link.phase, serving=bool(link.served))

    def _asked(self, paths: list[Path]) -> None:
        """Draftlight was started once more."""
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
        self._window.views.composer.attach_files(paths)
