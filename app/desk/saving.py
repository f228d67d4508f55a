"""Saving: what the person has to know about how chats are kept, and the repair of a damaged file.

Nothing is said while all is well. A trouble stays until it is over: who clears the banner for
another reason calls `remind()`.
"""

from __future__ import annotations

import sqlite3

from msgspec.structs import replace
from PySide6.QtCore import QObject, Qt, Signal

from app import strings
from app.chat.banner import Banner
from app.session.chats import Chats
from app.session.trouble import Trouble, of_failure
from app.store.faults import is_damage, saving_trouble
from app.store.home import Home
from core.errors import RequestError
from core.events import failure


class Saving(QObject):
    """Hears the library on any thread, speaks on the window's."""

    chats_changed = Signal()  # there are others than before
    _heard = Signal(object)  # an Exception, or None

    def __init__(self, banner: Banner, chats: Chats, home: Home, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._banner = banner
        self._chats = chats
        self._home = home
        self._trouble: Trouble | None = None
        self._heard.connect(self._take, Qt.ConnectionType.QueuedConnection)
        banner.dismissed.connect(self._forget)
        if home.library:
            home.library.listen(self._heard.emit)
            self._show_condition()
        if home.preferences.problem and self._trouble is None:
            self._say(Trouble(strings.PREFERENCES_TITLE, strings.preferences_lost(home.preferences.problem)))

    def remind(self) -> None:
        """Show again what is still wrong."""
        if self._trouble:
            self._banner.show_trouble(self._trouble)

    def repair(self) -> None:
        """What the banner of a damaged file offers."""
        library = self._home.library
        if library is None:
            return
        try:
            library.repair()
        except RequestError as error:
            self._banner.show_trouble(of_failure(failure(error, command="repair")))
            return
        self._clear()
        self._chats.refresh()
        self.chats_changed.emit()

    def _take(self, error: Exception | None) -> None:
        library = self._home.library
        if library is None:
            return
        if error is None:
            self._clear()
        elif library.condition.state == "damaged" or (isinstance(error, sqlite3.Error) and is_damage(error)):
            library.take_damage(error)
            self._chats.refresh()
            self._show_condition()
            self.chats_changed.emit()
        else:
            self._say(Trouble(strings.NOT_SAVED_TITLE, strings.not_saved_text(saving_trouble(error))))

    def _show_condition(self) -> None:
        assert self._home.library
        found = self._home.library.condition
        if found.state == "damaged":
            text = strings.damaged_text(found.readable, found.lost, found.copy)
            self._say(Trouble(found.reason, text, "repair"))
        elif found.state != "whole":
            self._say(Trouble(found.reason, f"{found.hint} {strings.NOTHING_SAVED}".strip()))

    def _say(self, trouble: Trouble) -> None:
        self._trouble = replace(trouble, stays=True)
        self._banner.show_trouble(self._trouble)

    def _clear(self) -> None:
        if self._trouble and self._banner.trouble == self._trouble:
            self._banner.clear()
        self._trouble = None

    def _forget(self) -> None:
        """Dismissed: the person knows."""
        self._trouble = None
