"""SettingsBox: fills the box under the server's settings, and copies or renews the key."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from app.controllers.server import strings
from app.controllers.server.server import ServerController, ServerState
from app.windows.server.settings_page import ServerBox
from core.errors import RequestError


class SettingsBox(QObject):
    """As long as the box."""

    def __init__(self, server: ServerController, box: ServerBox) -> None:
        super().__init__(box)
        self._server = server
        self._box = box
        server.changed.connect(self._show)
        box.key_copy_requested.connect(self._copy)
        box.key_renewal_requested.connect(self._renew)
        self._show(server.state)

    def _show(self, state: ServerState) -> None:
        self._box.show_state(state_words(state), bad=state.problem is not None)

    def _copy(self) -> None:
        try:
            QGuiApplication.clipboard().setText(self._server.key.get())
        except RequestError as error:
            self._box.say_of_key(str(error))
            return
        self._box.say_of_key(strings.COPIED_KEY)

    def _renew(self) -> None:
        try:
            self._server.renew_key()
        except RequestError as error:
            self._box.say_of_key(str(error))
            return
        self._box.say_of_key(strings.NEW_KEY_MADE)


def state_words(state: ServerState) -> str:
    """The server's state in a sentence."""
    if state.problem is not None:
        return f"{state.problem.message} {state.problem.hint}".strip()
    if state.status == "on":
        return strings.serving(state.address)
    return strings.STARTING if state.status == "starting" else strings.OFF
