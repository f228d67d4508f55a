"""Saving: reports problems of the chat database in the banner, repairs or restores it, and asks before
unsaved changes are discarded.

A problem stays in the banner until it is solved.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from app.controllers import strings
from app.controllers.worker import TroubleController
from app.controls.buttons import Kind
from app.controls.sheets import Question
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.session.trouble import Trouble, Until
from app.store.chat_files import to_json
from app.store.faults import is_damage, saving_trouble
from app.store.library import Home
from core.errors import RequestError
from core.system.files import write_atomic

# Saving normally takes milliseconds. An answer waits no longer than this, a closing window somewhat longer.
_SAVED_WITHIN_S = 1.5
_CLOSES_WITHIN_S = 5.0


class Saving(QObject):
    """The library reports on any thread; the reports are handled on the window's thread."""

    chats_changed = Signal()  # the list, after a repair, a restore, a loss or a delay; not the open chat
    _reported = Signal(object)  # an Exception; None: saved
    _settings_reported = Signal(str)  # why they are not saved; empty: saved

    def __init__(
        self, trouble: TroubleController, chats: Chats, home: Home, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._trouble = trouble
        self._chats = chats
        self._home = home
        self._shown: Trouble | None = None
        self._reported.connect(self._on_report, Qt.ConnectionType.QueuedConnection)
        self._show_problem()
        home.library.listen(self._reported.emit)
        self._settings_trouble: Trouble | None = None
        self._settings_reported.connect(self._on_settings, Qt.ConnectionType.QueuedConnection)
        home.preferences.listen(self._settings_reported.emit)
        for notice in home.library.notices:
            trouble.show(Trouble(notice.reason, notice.hint, until=Until.OVER))
        if problem := home.preferences.problem:
            text = strings.preferences_lost(problem)
            trouble.show(Trouble(strings.PREFERENCES_TITLE, text, until=Until.OVER))

    def remedy(self, name: str) -> None:
        """Repair the database (`repair`, `repair-incomplete`) or restore missing chats (`restore`)."""
        library = self._home.library
        before = library.problem
        try:
            self._chats.save_held()  # the database may have lost them
            incomplete = name == "repair-incomplete"
            report = library.restore() if name == "restore" else library.repair(incomplete=incomplete)
        except RequestError as error:
            if library.problem == before:
                self._trouble.show_request_error(error, name)
            self._show_problem()
            return
        self._refresh()
        if report:
            self._trouble.show(Trouble(strings.CHATS_RESTORED_TITLE, report, until=Until.ASKED))

    def ask_to_close(self, owner: QWidget) -> Question:
        """Open a sheet that asks what to do with unsaved changes; answers `elsewhere` or `discard`."""
        library = self._home.library
        count, chats = len(library.unsaved()), len(self._unsaved_chats())
        title = strings.unsaved_title(count)
        why = library.problem.reason if library.problem else saving_trouble(library.failure)
        detail = strings.unsaved_detail(why, library.keep_beside(), chats, count - chats)
        answers: list[tuple[str, str, Kind]] = [("discard", strings.DISCARD, "plain")]
        if chats:
            answers.append(("elsewhere", strings.SAVE_ELSEWHERE, "primary"))
        question = Question(title, detail, strings.CANCEL, answers, owner)
        question.open()
        return question

    def write_elsewhere(self, path: Path) -> None:
        """Write the unsaved chats to a file that can be imported. Raises `OSError`."""
        write_atomic(path, to_json(self._unsaved_chats()))

    def _unsaved_chats(self) -> list[Conversation]:
        unsaved = self._home.library.unsaved().values()
        return [record for record in unsaved if isinstance(record, Conversation)]

    async def all_kept(self) -> bool:
        """Whether nothing is left to save, after an attempt of at most 5 s."""
        library = self._home.library
        if library.unsaved():
            await self._kept(_CLOSES_WITHIN_S)
        return not library.unsaved()

    async def question_kept(self) -> None:
        """Returns once the question is saved, or after 1.5 s with a warning in the banner."""
        library = self._home.library
        if library.writer is None or (library.problem and library.problem.remedy != "restore"):
            return  # nothing is saved, or the banner says that nothing can be
        if await self._kept(_SAVED_WITHIN_S) is None:
            self._report(Trouble(strings.NOT_SAVED_TITLE, strings.not_saved_text(strings.DISK_IS_SLOW)))
            library.when_kept(lambda done: self._reported.emit(None) if done else None)

    async def call_kept(self) -> bool:
        """Whether everything is stored before a call runs. Without a folder nothing outlives this process."""
        if self._home.folder is None:
            return True
        return await self._kept(_CLOSES_WITHIN_S) is True

    async def _kept(self, timeout_s: float) -> bool | None:
        """Whether everything is saved; None if it takes longer."""
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[bool] = loop.create_future()

        def settle(done: bool) -> None:
            if not kept.done():
                kept.set_result(done)

        def report(done: bool) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, done)

        self._home.library.when_kept(report)
        try:
            return await asyncio.wait_for(kept, timeout_s)
        except TimeoutError:
            return None

    def _on_report(self, error: Exception | None) -> None:
        library = self._home.library
        if error is None:
            self._refresh()
        elif library.damaged or is_damage(error):
            library.take_damage(error)
            self._refresh()
        elif library.problem and library.problem.remedy != "restore":
            self._show_problem()
        else:
            self._report(Trouble(strings.NOT_SAVED_TITLE, strings.not_saved_text(saving_trouble(error))))

    def _on_settings(self, reason: str) -> None:
        self._trouble.withdraw(self._settings_trouble)
        self._settings_trouble = None
        if reason:
            self._settings_trouble = Trouble(strings.SETTINGS_NOT_SAVED, reason, until=Until.OVER)
            self._trouble.show(self._settings_trouble)

    def _refresh(self) -> None:
        """Show what the database has now."""
        self._chats.refresh()
        self._show_problem()
        self.chats_changed.emit()

    def _show_problem(self) -> None:
        found = self._home.library.problem
        if found is None:
            self._trouble.withdraw(self._shown)
            self._shown = None
        elif found.remedy:
            self._report(Trouble(found.reason, found.hint, found.remedy))
        else:
            self._report(Trouble(found.reason, f"{found.hint} {strings.NOTHING_SAVED}".strip()))

    def _report(self, trouble: Trouble) -> None:
        trouble = replace(trouble, until=Until.OVER)
        if trouble != self._shown:
            self._trouble.withdraw(self._shown)
        self._shown = trouble
        self._trouble.show(trouble)
