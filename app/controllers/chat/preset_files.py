"""PresetFiles: presets out into a file and in from files, chosen by the person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.chat.notice_bar import NoticeBar
from app.controllers.chat import strings
from app.controllers.chat.chat_presets import ChatPresets
from app.controls.folders import first_folder, show_in_folder
from app.controls.sheets import open_files, save_file
from app.panels.inspector.preset_bar import PresetBar
from app.session.chats import presets
from app.session.chats.presets import Preset
from app.store import strings as store_strings
from app.store.faults import StoreError, TransferError
from app.store.files import file_name
from app.store.preset_file import from_json, to_json
from core.errors import RequestError
from core.system.files import replacing

# Of a few settings and a system prompt; what is far longer is something else.
_LONGEST_BYTES = 4 * 2**20


class PresetFiles(QObject):
    """`bar` asks and is the parent of the dialogs, `notice` says what was done."""

    failed = Signal(object)  # RequestError

    def __init__(
        self, bar: PresetBar, notice: NoticeBar, kept: ChatPresets, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window: QWidget = bar
        self._notice = notice
        self._kept = kept
        bar.export_requested.connect(self.export)
        bar.import_requested.connect(self.import_files)

    def export(self, name: str) -> None:
        """Ask where to, and write one preset, or (empty name) all of the person's own."""
        one = presets.find(name, self._kept.own)
        found = (one,) if one else self._kept.own
        proposed = f"{file_name(name) or strings.ALL_PRESETS_FILE}.json"
        if found:
            save_file(
                self._window,
                strings.EXPORT_TITLE,
                Path(first_folder(), proposed),
                lambda path: self._write(path, found),
                kinds=strings.export_filter("json"),
            )

    def import_files(self) -> None:
        """Ask which files, and take in what is in them."""
        title, kinds = strings.IMPORT_PRESETS_TITLE, strings.PRESETS_FILTER
        open_files(self._window, title, self.take_in, kinds=kinds)

    def take_in(self, paths: Sequence[Path]) -> None:
        """The presets of these files; a file that cannot be used is named and the others are taken."""
        taken: list[Preset] = []
        for path in paths:
            try:
                taken += _read(path)
            except StoreError as error:
                self.failed.emit(error)
        if taken:
            self._kept.keep(presets.with_imported(self._kept.own, taken))
            self._notice.show_notice(strings.imported_presets([each.name for each in taken]))

    def _write(self, path: Path, found: Sequence[Preset]) -> None:
        try:
            with replacing(path) as file:
                file.write(to_json(found))
        except OSError as error:
            reason = store_strings.not_written(str(path), error.strerror or str(error))
            self.failed.emit(TransferError(reason))
            return
        text = strings.exported_presets(path.name, len(found))
        self._notice.show_notice(text, strings.SHOW_IN_FOLDER, lambda: self._show(path))

    def _show(self, path: Path) -> None:
        if not show_in_folder(path):
            self.failed.emit(RequestError(strings.folder_not_shown(str(path)), strings.CHECK_FOLDER))


def _read(path: Path) -> tuple[Preset, ...]:
    """The presets of one file. Raises `TransferError` that names it."""
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST_BYTES + 1)
    except OSError as error:
        raise TransferError(store_strings.not_read(path.name, error.strerror or str(error))) from None
    if len(data) > _LONGEST_BYTES:
        raise TransferError(store_strings.in_file(path.name, store_strings.NO_PRESETS))
    try:
        return from_json(data)
    except TransferError as error:
        raise TransferError(store_strings.in_file(path.name, error.message), error.hint) from None
