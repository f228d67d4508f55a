"""Transfer: exports chats to files.

Exports are written one after the other on a thread, which gets the chats from the window's thread one by one.
A file is replaced only when the new one is complete. Every export ends with a notice or an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject

from app.chat.bars import NoticeBar
from app.chat.export import ExportOptions, blocks, formulas_in, page, to_pdf
from app.controllers import strings
from app.controllers.app import App
from app.controls.sheets import ask_options, choose_folder, first_folder, save_file, show_in_folder
from app.panels import strings as panels_strings
from app.session.chats.conversation import Conversation
from app.session.images import images_of
from app.store import strings as store_strings
from app.store.chat_files import file_name, pieces, to_markdown
from app.store.faults import TransferError
from app.store.image_copies import ImageCopies
from core.documents.client import ImageReading
from core.errors import RequestError
from core.events import Image
from core.system.files import replacing
from core.system.reader_process import StoppedError

# The longer side of images in HTML and PDF files; twice the displayed size.
PICTURE_PX = 960
_ENDINGS = {"json": "json", "markdown": "md", "html": "html", "pdf": "pdf"}


_Result = TypeVar("_Result")


class Transfer(QObject):
    """Exports what the sidebar asks for."""

    def __init__(self, app: App, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._notice = app.views.notice_bar
        self._chats = app.chats
        self._exports: deque[_Export] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._reading: ImageReading | None = None  # of the thread
        self._options = ExportOptions()

    @property
    def is_busy(self) -> bool:
        return bool(self._exports)

    def export(self, chat_id: str, kind: str) -> None:
        """Ask for a file and export one chat, or all of them if `chat_id` is empty."""
        every = self._chats.listed()
        chat_ids = (chat_id,) if chat_id else tuple(each.id for each in every)
        in_folder = not chat_id and kind != "json"

        def choose() -> None:
            options = self._options

            def start(path: Path) -> None:
                self._start(_Export(path, kind, chat_ids, options, in_folder))

            if in_folder:
                choose_folder(self._app.views.sidebar, strings.EXPORT_TITLE, start)
            else:
                name = _file_name(self._chats.summary(chat_id).title) if chat_id else strings.ALL_CHATS_FILE
                self._choose_file(name, _ENDINGS[kind], start)

        if kind in ("pdf", "html"):
            self._ask_options(kind, choose)
        else:
            choose()

    def _ask_options(self, kind: str, then: Callable[[], None]) -> None:
        """Let the person choose the parts to export; the choice is proposed again until the window closes."""

        def chosen(thoughts: bool, tints: bool) -> None:
            self._options = ExportOptions(thoughts, tints)
            then()

        ask_options(
            self._app.views.sidebar,
            strings.EXPORT_AS[kind],
            ((strings.EXPORT_THOUGHTS, self._options.thoughts), (strings.EXPORT_TINTS, self._options.tints)),
            strings.EXPORT_ACCEPT,
            chosen,
        )

    async def close(self) -> None:
        """Cancel the exports that are not written yet. Safe to call twice."""
        self._closing = True
        if reading := self._reading:
            reading.stop()
        if self._task is not None:
            await self._task

    def _start(self, export: _Export) -> None:
        self._exports.append(export)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write_all())

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._exports and not self._closing:
            export = self._exports[0]
            try:
                written = await on_thread(partial(self._write, export, loop))
            except OSError as error:
                place = error.filename or str(export.path)
                self._app.report(
                    TransferError(store_strings.not_written(str(place), error.strerror or str(error)))
                )
            except RequestError as error:  # a chat could not be loaded
                self._app.report(error)
            except ClosingError:
                pass
            else:
                self._show_result(export.path, written, export.in_folder)
            finally:
                self._exports.popleft()
        self._exports.clear()

    async def _load(self, chat_id: str) -> Conversation | None:
        """None if the chat was erased."""
        if self._closing:
            raise ClosingError
        try:
            return self._chats.get(chat_id)
        except KeyError:
            return None

    # ---- on the thread

    def _write(self, export: _Export, loop: asyncio.AbstractEventLoop) -> int:
        """Write the export; returns the number of chats. Raises `OSError`, and errors of loading a chat."""
        written = 0

        def chats() -> Iterator[Conversation]:
            nonlocal written
            for chat_id in export.chat_ids:
                chat = asyncio.run_coroutine_threadsafe(self._load(chat_id), loop).result()
                if chat is not None:
                    yield chat
                    written += 1

        if export.kind == "json":

            def with_copies() -> Iterator[Conversation]:
                for chat in chats():
                    for image in images_of(chat):
                        copies.add(image)
                    yield chat

            with self._copies(export.path) as copies, replacing(export.path, private=False) as file:
                for piece in pieces(with_copies()):
                    file.write(piece)
            return written
        for chat in chats():
            name = f"{_file_name(chat.title)}.{_ENDINGS[export.kind]}"
            path = _free(export.path / name) if export.in_folder else export.path
            with self._copies(path) as copies, replacing(path, private=False) as file:
                for data in self._file(chat, export, copies):
                    file.write(data)
        return written

    def _file(self, chat: Conversation, export: _Export, copies: ImageCopies) -> Iterator[bytes]:
        """The parts of the file of one chat. Raises `ClosingError` if the window closes."""
        title, options = chat.title or panels_strings.NEW_CHAT, export.options
        if export.kind == "pdf":
            formulas, found = formulas_in(chat, self._check_open), dict[str, bytes]()

            def picture(image: Image) -> bytes | None:
                made = found.get(image.hash) or self._picture(image)
                if made is not None:
                    found[image.hash] = made
                return made

            parts = blocks(chat, options, title, formulas, picture)
            yield to_pdf(title, parts, self._check_open, formulas, found)
        elif export.kind == "html":
            for part in page(chat, options, title, formulas_in(chat, self._check_open), self._picture):
                self._check_open()
                yield part.encode(errors="replace")
        else:
            yield to_markdown(chat, copies.add).encode()

    @contextlib.contextmanager
    def _copies(self, path: Path) -> Iterator[ImageCopies]:
        """The copies of images next to the file at `path`; removed again if it is not written."""
        copies = ImageCopies(path, self._app.home.library.images)
        try:
            yield copies
        except BaseException:
            copies.undo()
            raise

    def _picture(self, image: Image) -> bytes | None:
        """A PNG of the image; None if it is missing. Raises `ClosingError` if the window closes."""
        images = self._app.home.library.images
        if not images.is_kept(image.hash):
            return None
        self._reading = reading = ImageReading(images.path(image.hash), name=image.name)
        self._check_open()
        try:
            return reading.preview(image.hash, PICTURE_PX)
        except StoppedError:
            raise ClosingError from None
        except RequestError:  # damaged meanwhile
            return images.thumbnail(image.hash)
        finally:
            self._reading = None

    def _check_open(self) -> None:
        if self._closing:
            raise ClosingError

    # ---- inside

    def _show_result(self, path: Path, chats: int, in_folder: bool) -> None:
        text = strings.exported(path.name or str(path), chats, in_folder)
        show_written(self._notice, text, path, self._app.report)

    def _choose_file(self, name: str, ending: str, on_chosen: Callable[[Path], None]) -> None:
        save_file(
            self._app.views.sidebar,
            strings.EXPORT_TITLE,
            Path(first_folder(), f"{name}.{ending}"),
            on_chosen,
            kinds=strings.export_filter(ending),
        )


@dataclass(frozen=True)
class _Export:
    """`path` is a file or, `in_folder`, the folder that gets a file for each chat."""

    path: Path
    kind: str  # one of `_ENDINGS`
    chat_ids: tuple[str, ...]
    options: ExportOptions  # of HTML and PDF
    in_folder: bool


class ClosingError(Exception):
    """The window is closing."""


def show_written(notice: NoticeBar, text: str, path: Path, report: Callable[[RequestError], object]) -> None:
    """Shows that `path` was written, with a button that shows it in its folder."""

    def show() -> None:
        if not show_in_folder(path):
            report(RequestError(strings.folder_not_shown(str(path)), strings.CHECK_FOLDER))

    notice.show_notice(text, strings.SHOW_IN_FOLDER, show, kind="done")


async def on_thread(work: Callable[[], _Result]) -> _Result:
    """The result of `work`, run on a daemon thread: a hanging disk cannot keep the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def settle(give: Callable[[], None]) -> None:
        if not done.cancelled():
            give()

    def run() -> None:
        try:
            give = partial(done.set_result, work())
        except BaseException as error:
            give = partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, give)

    thread = threading.Thread(target=run, name="draftlight-export", daemon=True)
    thread.start()
    try:
        return await done
    finally:
        if done.done() and not done.cancelled():
            thread.join(1.0)


def _file_name(title: str) -> str:
    return file_name(title) or panels_strings.NEW_CHAT


def _free(path: Path) -> Path:
    """`path`, with a number appended if the file exists."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem} ({number}){path.suffix}")
    return found
