"""Saving: reports problems of the chat database in the banner, and repairs or restores it.

A problem stays in the banner until it is solved.
"""

from __future__ import annotations

import asyncio
import contextlib

from msgspec.structs import replace
from PySide6.QtCore import QObject, Qt, Signal

from app.controllers import strings
from app.controllers.worker import TroubleController
from app.session.chats.chats import Chats
from app.session.trouble import Trouble, Until
from app.store.faults import is_damage, saving_trouble
from app.store.library import Home
from core.errors import RequestError

# Saving normally takes milliseconds. An answer waits no longer than this.
_SAVED_WITHIN_S = 1.5


class Saving(QObject):
    """The library reports on any thread; the reports are handled on the window's thread."""

    chats_changed = Signal()  # after a repair, a restore or a loss
    _reported = Signal(object)  # an Exception; None: saved

    def __init__(
        self, trouble: TroubleController, chats: Chats, home: Home, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._trouble = trouble
        self._chats = chats
        self._home = home
        self._shown: Trouble | None = None
        self._reported.connect(self._on_report, Qt.ConnectionType.QueuedConnection)
        trouble.listen_dismissed(self._dismissed)
        home.library.listen(self._reported.emit)
        self._show_condition()
        if aside := home.library.unsaved_set_aside:
            trouble.show(
                Trouble(strings.UNSAVED_TITLE, strings.unsaved_damaged(aside.name), until=Until.OVER)
            )
        if problem := home.preferences.problem:
            text = strings.preferences_lost(problem)
            trouble.show(Trouble(strings.PREFERENCES_TITLE, text, until=Until.OVER))

    def repair(self) -> None:
        """Move what is readable to a new database."""
        try:
            self._home.library.repair()
        except RequestError as error:
            self._trouble.show_request_error(error, "repair")
            return
        self._clear()
        self._show_condition()
        self._chats.refresh()
        self.chats_changed.emit()

    def restore(self) -> None:
        """Restore missing chats from the backup."""
        try:
            self._home.library.restore()
        except RequestError as error:
            self._trouble.show_request_error(error, "restore")
            return
        self._clear()
        self._chats.refresh()
        self.chats_changed.emit()

    def _dismissed(self, trouble: Trouble) -> None:
        """The person accepts that chats are missing."""
        if trouble == self._shown:
            self._home.library.accept_missing()

    async def question_kept(self) -> None:
        """Returns once the question is saved, or after 1.5 s with a warning in the banner."""
        library = self._home.library
        if library.writer is None:
            return  # nothing is saved, or the banner says that nothing can be
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[bool] = loop.create_future()

        def settle(done: bool) -> None:
            if not kept.done():
                kept.set_result(done)

        def report(done: bool) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, done)

        library.when_kept(report)
        try:
            await asyncio.wait_for(kept, _SAVED_WITHIN_S)
        except TimeoutError:
            self._report(Trouble(strings.NOT_SAVED_TITLE, strings.not_saved_text(strings.DISK_IS_SLOW)))
            library.when_kept(lambda done: self._reported.emit(None) if done else None)

    def _on_report(self, error: Exception | None) -> None:
        library = self._home.library
        if error is None:
            self._clear()
        elif library.salvages or is_damage(error):
            library.take_damage(error)
            self._chats.refresh()
            self._show_condition()
            self.chats_changed.emit()
        else:
            self._report(Trouble(strings.NOT_SAVED_TITLE, strings.not_saved_text(saving_trouble(error))))

    def _show_condition(self) -> None:
        found = self._home.library.condition
        if found.state == "damaged":
            text = strings.damaged_text(found.readable, found.lost, found.copy)
            self._report(Trouble(found.reason, text, "repair"))
        elif found.state == "missing":
            text = strings.missing_text(found.readable, found.lost, found.restorable)
            self._report(Trouble(found.reason, text, "restore" if found.restorable else ""))
        elif found.state != "whole":
            self._report(Trouble(found.reason, f"{found.hint} {strings.NOTHING_SAVED}".strip()))

    def _report(self, trouble: Trouble) -> None:
        trouble = replace(trouble, until=Until.OVER)
        if trouble != self._shown:
            self._trouble.withdraw(self._shown)
        self._shown = trouble
        self._trouble.show(trouble)

    def _clear(self) -> None:
        self._trouble.withdraw(self._shown)
        self._shown = None
