"""Importing: adds the chats of files to the list.

Files are read one after the other on a thread, and mostly in a child process; their chats are added on the
window's thread in slices of a few milliseconds. Reading waits until the chats are saved, so that a large
archive is never in memory as a whole. Every import ends with a notice or an error, unless the window closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox

from app.controllers import strings
from app.controllers.app import App
from app.controllers.chat_list import ChatListController
from app.controllers.transfer import ClosingError, on_thread
from app.controls.sheets import open_files, show_details
from app.richtext.markdown.markdown import load_parser
from app.session.chats.conversation import Conversation
from app.session.images import Stoppable, hashes_of, with_paths
from app.store.image_copies import keep_beside
from app.store.importing import ImportReading
from core.chat_archives.reading import Losses
from core.errors import RequestError
from core.system.reader_process import StoppedError

# The UI thread is used for this long between two other events.
_SLICE_S = 0.01
# Chats of a batch, and characters of their text after which it is handed over.
_BATCH_CHATS = 50
_BATCH_CHARACTERS = 500_000
# Unsaved chats in memory.
UNSAVED_CHARACTERS = 16_000_000
_SAVED_WITHIN_S = 60.0
TOLD_EVERY_S = 1.0
_LISTED_LOSSES = 500


class Importing(QObject):
    """`refresh_open` shows the open chat again."""

    def __init__(
        self,
        app: App,
        listing: ChatListController,
        refresh_open: Callable[[], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._listing = listing
        self._refresh_open = refresh_open
        self._notice = app.views.notice_bar
        self._chats = app.chats
        self._waiting: deque[Path] = deque()
        self._undoable: list[str] = []  # the chats of an import that is to be undone
        self._task: asyncio.Task[None] | None = None
        self._reading: ImportReading | None = None
        self._image: Stoppable | None = None  # the latest one that the thread read
        self._stopped = self._closing = False
        self._told_s = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether files are being read, or an import is being undone."""
        return self._task is not None and not self._task.done()

    def choose(self) -> None:
        open_files(
            self._app.views.sidebar, strings.IMPORT_TITLE, self.import_from, kinds=strings.IMPORT_FILTER
        )

    def import_from(self, paths: Sequence[Path]) -> None:
        """Import the chats of these files. A file that cannot be imported is reported; the others are."""
        self._waiting.extend(paths)
        self._begin()

    def stop(self) -> None:
        """End the import. Chats that were added stay."""
        self._stopped = True
        self._waiting.clear()
        for reading in (self._reading, self._image):
            if reading:
                reading.stop()

    async def close(self) -> None:
        """Stop the import. Safe to call twice."""
        self._closing = True
        self.stop()
        if self._task is not None:
            await self._task

    # ---- inside

    def _begin(self) -> None:
        if not self.is_busy:
            self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        """Run the waiting imports, and those that are added meanwhile."""
        while not self._closing and (self._undoable or self._waiting):
            if self._undoable:
                await self._delete_all()
            else:
                await self._import_all()

    async def _import_all(self) -> None:
        result, opened = _Result(), self._chats.open.id
        self._stopped, self._told_s = False, 0.0
        while self._waiting and not self._stopped:
            path = self._waiting.popleft()
            self._tell(path, 0, result)
            try:
                await on_thread(partial(self._read, path, result, asyncio.get_running_loop()))
            except RequestError as error:
                self._app.report(error)
            except ClosingError:
                return
        if self._tells:
            self._notice.clear()
        if result.all_chats:
            self._listing.show()
            await asyncio.sleep(_SLICE_S)  # a long list is painted before a chat is opened
            if self._closing:
                return
            if result.first not in ("", opened) and self._chats.open.id == opened:
                self._listing.open_chat(result.first)
            elif self._chats.open.id in result.updated:
                self._refresh_open()
            self._show_result(result)
        elif self._stopped:
            self._notice.show_notice(strings.IMPORT_STOPPED)

    @property
    def _tells(self) -> bool:
        """Whether the notice shows the progress, or may: nothing that has a button, such as Undo."""
        return self._notice.isHidden() or self._notice.action_button.text() in ("", strings.STOP_IMPORT)

    def _tell(self, path: Path, percent: int, result: _Result) -> None:
        """Shows the progress. Read aloud only once."""
        if self._tells:
            first = not self._told_s
            self._told_s = time.monotonic()
            text = strings.importing(path.name, percent, result.all_chats)
            self._notice.show_notice(text, strings.STOP_IMPORT, self.stop, announce=first)

    async def _take(self, batch: Sequence[tuple[str, Conversation]], result: _Result) -> None:
        began_s = time.monotonic()
        for source, chat in batch:
            if self._closing:
                raise ClosingError
            stored, what = self._chats.add(chat)
            result.add(source, stored.id, what)
            if time.monotonic() > began_s + _SLICE_S:
                await asyncio.sleep(0)
                began_s = time.monotonic()

    async def _tell_progress(self, path: Path, done: int, total: int, result: _Result) -> None:
        if time.monotonic() > self._told_s + TOLD_EVERY_S:
            self._tell(path, 100 * done // max(total, 1), result)

    # ---- on the thread

    def _read(self, path: Path, result: _Result, loop: asyncio.AbstractEventLoop) -> int:
        """Read one file; returns the number of its chats. Raises what reading it raises."""
        self._reading = reading = ImportReading(path)
        if self._stopped:
            return 0
        load_parser()  # for the chat that is opened at the end
        batch: list[tuple[str, Conversation]] = []
        chats = characters = unsaved = 0

        def hand_over() -> None:
            nonlocal characters, unsaved
            if batch:
                asyncio.run_coroutine_threadsafe(self._take(tuple(batch), result), loop).result()
            batch.clear()
            unsaved, characters = unsaved + characters, 0
            if unsaved > UNSAVED_CHARACTERS:
                kept = threading.Event()
                self._app.home.library.when_kept(lambda done: kept.set())
                kept.wait(_SAVED_WITHIN_S)
                unsaved = 0

        def read_image(image: Stoppable) -> None:
            self._image = image
            if self._stopped:
                image.stop()

        images = self._app.home.library.images
        try:
            for item in reading.chats():
                if isinstance(item, Losses):
                    result.lose(item)
                elif isinstance(item, tuple):
                    with contextlib.suppress(StoppedError):
                        keep_beside(path, hashes_of(item[1]), images, read_image)
                    source, chat = item
                    batch.append((source, with_paths(chat, images.path)))
                    chats += 1
                    characters += _characters(chat)
                    if len(batch) >= _BATCH_CHATS or characters > _BATCH_CHARACTERS:
                        hand_over()
                else:
                    told = self._tell_progress(path, item.done, item.total, result)
                    asyncio.run_coroutine_threadsafe(told, loop).result()
        finally:
            if not self._closing:
                hand_over()
            self._reading = None
        return chats

    # ---- the result

    def _show_result(self, result: _Result) -> None:
        text = strings.imported(result.counts, tuple(result.sources))
        if self._stopped:
            text = f"{strings.IMPORT_STOPPED} {text}"
        if result.lost:
            text = f"{text} {strings.not_kept(result.lost)}"
            self._notice.show_notice(
                text, strings.DETAILS, lambda: self._show_details(result), kind="warning"
            )
        elif result.undoable:
            self._notice.show_notice(text, strings.UNDO, lambda: self._undo(result), kind="done")
        else:
            self._notice.show_notice(text, kind="done")

    def _show_details(self, result: _Result) -> None:
        lines = [strings.lost_in(each.title, each.counts) for each in result.losses]
        if result.unlisted:
            lines.append(strings.more_lost(result.unlisted))
        title = strings.imported(result.counts, tuple(result.sources))
        box = show_details(self._app.views.sidebar, title, strings.not_kept(result.lost), "\n".join(lines))
        if result.undoable:
            undo = box.addButton(strings.UNDO_IMPORT, QMessageBox.ButtonRole.ActionRole)
            undo.clicked.connect(lambda: self._undo(result))

    def _undo(self, result: _Result) -> None:
        """Move the chats that were added to Recently Deleted."""
        self._notice.clear()
        self._undoable += result.undoable
        self._begin()

    async def _delete_all(self) -> None:
        chat_ids, self._undoable = self._undoable, []
        began_s, deleted = time.monotonic(), 0
        for chat_id in chat_ids:
            if self._closing:
                return
            try:
                chat = self._chats.get(chat_id)
            except (KeyError, RequestError):  # erased, or unreadable
                continue
            if chat.deleted is None:
                deleted += 1
                if chat_id == self._chats.open.id or not all(turn.answer.over for turn in chat.turns):
                    self._listing.delete(chat_id)
                else:
                    self._chats.keep(chat.with_deleted(self._chats.steady_now()))
            if time.monotonic() > began_s + _SLICE_S:
                await asyncio.sleep(0)
                began_s = time.monotonic()
        self._listing.show()
        self._notice.show_notice(strings.import_undone(deleted), kind="done")


class _Result:
    """Totals of one import command: imported chats, and losses.

    `first` is the first chat that was not imported before.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.losses: list[Losses] = []
        self.unlisted = 0
        self.first = ""
        self.undoable: list[str] = []
        self.updated: set[str] = set()

    @property
    def all_chats(self) -> int:
        return sum(self.counts.values())

    def add(self, source: str, chat_id: str, what: str) -> None:
        self.counts[what] += 1
        self.sources[source] += 1
        if what == "updated":
            self.updated.add(chat_id)
        if what in ("added", "restored"):
            self.undoable.append(chat_id)
        if what != "known":
            self.first = self.first or chat_id

    def lose(self, losses: Losses) -> None:
        self.lost.update(losses.counts)
        if len(self.losses) < _LISTED_LOSSES:
            self.losses.append(losses)
        else:
            self.unlisted += 1


def _characters(chat: Conversation) -> int:
    return sum(
        len(version.user.content)
        + sum(len(each.text) for each in version.user.attachments)
        + sum(len(token.text) for token in version.answer.tokens)
        for turn in chat.turns
        for version in turn.versions
    )
