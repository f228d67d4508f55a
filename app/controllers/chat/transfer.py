"""Transfer: chats out into files and in from files, chosen by the person.

Many chats are written one at a time between the window's other work, so that nothing stands still.
What was written is said, and so is what could not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chat.notice_bar import NoticeBar
from app.controllers.chat import strings
from app.controls.first_folder import first_folder
from app.controls.show_in_folder import show_in_folder
from app.panels import strings as panels_strings
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.store import strings as store_strings
from app.store.files.file_name import file_name
from app.store.files.json_file import from_json, to_json
from app.store.files.markdown_file import from_markdown, to_markdown
from app.store.recovery.faults import StoreError, TransferError
from core.errors import RequestError


class Transfer(QObject):
    """`window` is the parent of the dialogs, `notice` says what was written where."""

    imported = Signal(str)  # the first chat's id
    failed = Signal(object)  # RequestError

    def __init__(
        self, window: QWidget, notice: NoticeBar, chats: Chats, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._notice = notice
        self._chats = chats
        self._work: Iterator[None] | None = None
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._go_on)

    @property
    def is_busy(self) -> bool:
        """Whether files are being written."""
        return self._work is not None

    def export(self, chat_id: str, kind: str) -> None:
        """Ask where to, and write one chat, or (empty id) all of them."""
        if chat_id:
            self._export_one(self._chats.get(chat_id), kind)
        elif kind == "json":
            path = self._save_path(strings.ALL_CHATS_FILE, "json")
            if path:
                self._start(self._all_as_json(path))
        else:
            folder = QFileDialog.getExistingDirectory(self._window, strings.EXPORT_TITLE, first_folder())
            if folder:
                self._start(self._all_as_markdown(Path(folder)))

    def import_files(self) -> None:
        """Ask which files, and take in what is in them."""
        names, _ = QFileDialog.getOpenFileNames(
            self._window, strings.IMPORT_TITLE, first_folder(), strings.IMPORT_FILTER
        )
        self.take_in([Path(name) for name in names])

    def take_in(self, paths: list[Path]) -> None:
        """The chats of these files; a file that holds none is named and the others are taken."""
        first = ""
        for path in paths:
            try:
                for chat in _read(path):
                    added = self._chats.add(chat)
                    first = first or added.id
            except StoreError as error:
                self.failed.emit(error)
        if first:
            self.imported.emit(first)

    def _export_one(self, chat: Conversation, kind: str) -> None:
        path = self._save_path(_file_name(chat.title), "json" if kind == "json" else "md")
        if path:
            data = to_json([chat]) if kind == "json" else to_markdown(chat).encode()
            if self._guard(lambda: path.write_bytes(data), path):
                self._tell(path, 1)

    def _all_as_json(self, path: Path) -> Iterator[None]:
        chats = []
        for each in (*self._chats.listed(), *self._chats.archived()):
            chats.append(self._chats.get(each.id))
            yield
        if self._guard(lambda: path.write_bytes(to_json(chats)), path):
            self._tell(path, len(chats))

    def _all_as_markdown(self, folder: Path) -> Iterator[None]:
        written = 0
        for each in (*self._chats.listed(), *self._chats.archived()):
            chat = self._chats.get(each.id)
            path = _free(folder / f"{_file_name(chat.title)}.md")
            text = to_markdown(chat)
            if not self._guard(lambda path=path, text=text: path.write_text(text, "utf-8"), path):  # type: ignore[misc]
                return
            written += 1
            yield
        self._tell(folder, written)

    def _tell(self, path: Path, chats: int) -> None:
        text = strings.exported(path.name or str(path), chats, path.is_dir())
        self._notice.show_notice(text, strings.SHOW_IN_FOLDER, lambda: self._show(path))

    def _show(self, path: Path) -> None:
        if not show_in_folder(path):
            self.failed.emit(RequestError(strings.folder_not_shown(str(path)), strings.CHECK_FOLDER))

    def _start(self, work: Iterator[None]) -> None:
        self._work = work
        self._timer.start()

    def _go_on(self) -> None:
        try:
            over = self._work is None or next(self._work, self) is self
        except StoreError as error:  # a chat that the disk does not give
            self.failed.emit(error)
            over = True
        if over:
            self._work = None
            self._timer.stop()

    def _save_path(self, name: str, ending: str) -> Path | None:
        chosen, _ = QFileDialog.getSaveFileName(
            self._window,
            strings.EXPORT_TITLE,
            str(Path(first_folder(), f"{name}.{ending}")),
            strings.export_filter(ending),
        )
        return Path(chosen) if chosen else None

    def _guard(self, write: Callable[[], object], path: Path) -> bool:
        try:
            write()
        except OSError as error:
            reason = store_strings.not_written(str(path), error.strerror or str(error))
            self.failed.emit(TransferError(reason))
            return False
        return True


def _read(path: Path) -> tuple[Conversation, ...]:
    """The chats of one file. Raises `TransferError` that names it."""
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".json":
            return from_json(data)
        return (from_markdown(data.decode("utf-8")),)
    except OSError as error:
        raise TransferError(store_strings.not_read(path.name, error.strerror or str(error))) from None
    except UnicodeDecodeError:
        raise TransferError(store_strings.not_read(path.name, store_strings.NOT_TEXT)) from None
    except TransferError as error:
        raise TransferError(store_strings.in_file(path.name, error.message), error.hint) from None


def _file_name(title: str) -> str:
    return file_name(title) or panels_strings.NEW_CHAT


def _free(path: Path) -> Path:
    """`path`, or with a number behind it if there is such a file."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem} ({number}){path.suffix}")
    return found
