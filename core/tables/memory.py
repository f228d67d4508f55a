"""TableMemory: the shared tables of the worker: loading, learning, saving, resetting, export and import.

One object of the engine. A family is *opened* when a model of it loads: its lock is acquired, and its saved
tables are read and stay in memory for all models of the family. Answers write them
through the drafters; call `answer_finished` after each. Changes are saved some seconds after the last answer
by a thread that works on copies, and by `close`. Without a folder nothing is read or written, which benches
use.

Invariants: no file of a family is written, renamed or erased without its lock; a second process only reads,
and reports it. An invalid file stops nothing: it is rejected with a note, and the previous generation is
tried. All methods belong to the engine's thread; `say` is also called by the saving thread. Commands
return their answer with an empty `request`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from core.drafting.shared_tables import NgramTables
from core.errors import TableError, reason_of
from core.events import TableDone, TableInfo, TableList, TableMoment, TableStatus
from core.settings import Settings
from core.system.files import write_atomic
from core.system.paths import tables_dir
from core.tables.family import Family, PendingFile, saved_info
from core.tables.files import (
    MOST_BYTES,
    InvalidFileError,
    SavedTable,
    TableFolder,
    TableKey,
    decode_table,
    encode_table,
    read_file,
)
from core.tables.prebuilt import erase_built, prebuilt_listing

T = TypeVar("T")

# Delay after a failed save; the disk may have space again by then.
_RETRY_S = 60.0
# Learned tables are saved after this time without answers.
_SAVE_AFTER_S = 15.0
_WRITING_S = 0.05


class TableMemory:
    """`folder` None keeps everything in memory only. `say` receives status events."""

    def __init__(
        self, folder: TableFolder | None = None, say: Callable[[TableStatus], None] = lambda status: None
    ) -> None:
        self._folder = folder
        self._report = say
        self._tables = NgramTables()
        self._families: dict[str, Family] = {}
        self._current: Family | None = None
        self._writer: threading.Thread | None = None
        self._due_at: float | None = None

    # ---- a model comes

    def open(self, family: str, family_name: str, vocabulary: int) -> None:
        """Loads the tables of `family` after a model of it was loaded. Does not raise."""
        started = time.perf_counter()
        opened = self._families.get(family)
        current = opened or Family(family, family_name, vocabulary, self._tables)
        self._current = self._families[family] = current
        current.name = family_name
        notes: list[str] = []
        refused = False
        if self._folder is not None and (opened is None or opened.why_not_saved):
            current.why_not_saved = self._folder.lock(family)
            notes = current.read(self._folder)
            refused = bool(notes)
            if current.why_not_saved:
                notes.append(f"Learned entries are not saved: {current.why_not_saved}.")
        self._report_loaded(current, started, notes, refused=refused)

    def forget(self) -> None:
        """Drops everything in memory that is not saved, and reads the saved files again."""
        current, self._families, self._tables, self._due_at = self._current, {}, NgramTables(), None
        if current is not None:
            self.open(current.fingerprint, current.name, current.vocabulary)

    # ---- answers

    @property
    def tables(self) -> NgramTables:
        """The tables that all requests share."""
        return self._tables

    def tables_for(self, settings: Settings) -> NgramTables:
        """The tables for one request: the shared ones, or copies if it must leave no trace."""
        if settings.tables.learn:
            return self._tables
        return self._tables.private_copies(self._current.fingerprint if self._current else "")

    def why_not_saved(self, settings: Settings) -> str:
        """Why what the answer teaches is lost with this process; empty if it is saved, or not learned."""
        current = self._current
        return current.why_not_saved if current is not None and settings.tables.learn else ""

    def answer_finished(self, settings: Settings) -> None:
        """Schedules a save of entries that drafters wrote during an answer."""
        current = self._current
        if current is not None and settings.tables.learn and not current.is_saved:
            self._due_at = time.monotonic() + _SAVE_AFTER_S
            self._report_status("learned", current)

    # ---- saving

    def due_s(self) -> float | None:
        """Seconds until the next save is due; None if there is nothing to save."""
        if self._due_at is None or all(family.is_saved for family in self._saving()):
            return None
        least = _WRITING_S if self.is_writing() else 0.0
        return max(least, self._due_at - time.monotonic())

    def save_soon(self) -> None:
        """Saves changes on a thread that works on copies; does nothing while one is running."""
        if self.is_writing():
            return
        self._due_at = None
        pending_by_family = self._pending()
        if pending_by_family:
            self._writer = threading.Thread(
                target=self._write_and_report, args=(pending_by_family,), name="tables"
            )
            self._writer.start()

    def save(self, *, force: bool = False) -> TableDone:
        """Saves changes now. Raises `TableError`, also if this process does not save.

        `force` saves the current family's tables even if unchanged.
        """
        started = time.perf_counter()
        current = self._require_family()
        self._require_folder()
        if current.why_not_saved:
            raise TableError(f"The tables are not saved: {current.why_not_saved}.")
        self._join_writer()
        pending_files = [pending for _, pending_files in self._pending() for pending in pending_files]
        if force:
            pending_files = current.pending_files(force=True)
        self._write(pending_files)
        self._due_at = None
        took_s = time.perf_counter() - started
        self._report_status("saved", current, took_s)
        entries = sum(pending.copy.used for pending in pending_files)
        return TableDone("", "save", current.fingerprint, current.name, entries, len(pending_files), took_s)

    def close(self) -> None:
        """Saves changes and releases the locks. Does not raise; a failure is reported."""
        self._join_writer()
        self._due_at = None
        self._write_and_report(self._pending())
        for family in self._families:
            if self._folder is not None:
                self._folder.unlock(family)
        self._families, self._current, self._tables = {}, None, NgramTables()

    # ---- commands

    def listing(self) -> tuple[tuple[TableInfo, ...], tuple[str, ...]]:
        """Every table in memory and on disk, the current family's first, and a sentence for each invalid
        file.
        """
        for family in self._families.values():
            family.records()
        infos = [info for family in self._families.values() for info in family.infos(self._folder)]
        refused: list[str] = []
        if self._folder is not None:
            held = {(info.family[:16], info.n, info.figures.slots) for info in infos}
            keys = self._folder.keys()
            for key in (key for key in keys if (key.family, key.n, key.slots) not in held):
                saved, found = self._folder.read(key)
                refused += found.notes
                if saved is not None:
                    previous = self._folder.has_previous(key.file)
                    infos.append(saved_info(saved.header, size_bytes=found.size_bytes, has_previous=previous))
            refused += self._folder.set_aside()
        current = self._current.fingerprint if self._current else ""
        infos.sort(key=lambda info: (info.family != current, info.family_name.lower(), info.figures.slots))
        return tuple(infos), tuple(refused)

    def load(self, *, previous: bool = False) -> TableDone:
        """Reads the current family's saved tables again. Raises `TableError`.

        Drops all changes since the last save. `previous` goes back one generation, in memory and on
        disk.
        """
        started = time.perf_counter()
        current, folder = self._require_family(), self._require_folder()
        self._join_writer()
        if previous:
            names = [key.file for key in folder.keys(current.fingerprint)]
            older = [name for name in names if folder.has_previous(name)]
            if not older:
                raise TableError(f"The {current.name} tables have no previous generation.")
            with folder.hold_lock(current.fingerprint):
                for name in older:
                    folder.restore_previous(name)
        notes = current.read(folder)
        took_s = self._report_loaded(current, started, notes, refused=bool(notes))
        files = len(current.records())
        return TableDone(
            "", "load", current.fingerprint, current.name, current.entries, files, took_s, notes=tuple(notes)
        )

    def reset(self, family: str) -> TableDone:
        """Erases everything of `family`, a fingerprint: memory, files, previous generations, set-aside and
        prebuilt files.

        Raises `TableError`; the memory is then unchanged.
        """
        started = time.perf_counter()
        self._join_writer()
        tables = [info for info in self.listing()[0] if info.family == family]
        files = 0
        if self._folder is not None:
            with self._folder.hold_lock(family):
                files = self._folder.erase(family) + erase_built(self._folder.path / "built", family)
        opened = self._families.get(family)
        if opened is not None:
            opened.forget()
            self._report_status("cold", opened)
        entries = sum(info.figures.used for info in tables)
        name = opened.name if opened else tables[0].family_name if tables else ""
        return TableDone("", "reset", family, name, entries, files, time.perf_counter() - started)

    def export(self, family: str, n: int, slots: int, path: Path, *, replace: bool = False) -> TableDone:
        """Writes a copy of one table to `path`. Raises `TableError`."""
        started = time.perf_counter()
        key, opened = TableKey(family, n, slots), self._families.get(family)
        record = opened.record(key) if opened else None
        if opened is not None and record is not None:
            content, entries, name = opened.encode_table_of(record), record.table.used, opened.name
        else:
            saved, found = self._require_folder().read(key)
            if saved is None:
                raise TableError(
                    " ".join(found.notes) or "The table does not exist.", "List the tables first."
                )
            content, entries, name = encode_table(saved), saved.header.figures.used, saved.header.family_name
        within = self._folder.path if self._folder else None
        written = _write_export(content, path, within, replace=replace)
        return TableDone("", "export", family, name, entries, 1, time.perf_counter() - started, str(written))

    def import_(self, path: Path) -> TableDone:
        """Installs the file at `path` as its family's table; the current one becomes the previous. Raises
        `TableError`.
        """
        started = time.perf_counter()
        folder = self._require_folder()
        self._join_writer()

        def decode(content: bytes) -> SavedTable:
            table = decode_table(content)
            opened = self._families.get(table.header.family)
            return decode_table(content, vocabulary=opened.vocabulary) if opened else table

        saved, content = _read_import(path, decode)
        header = saved.header
        opened = self._families.get(header.family)
        with folder.hold_lock(header.family):
            if opened is not None:
                self._write(opened.pending_files())
            folder.write(TableKey(header.family, header.n, header.slots).file, content)
        if opened is not None:
            opened.install(saved, len(content))
            self._report_status("warm", opened)
        took_s = time.perf_counter() - started
        return TableDone(
            "", "import", header.family, header.family_name, header.figures.used, 1, took_s, str(path)
        )

    # ---- inside

    def _saving(self) -> list[Family]:
        """The families that this process saves."""
        if self._folder is None:
            return []
        return [family for family in self._families.values() if not family.why_not_saved]

    def _pending(self) -> list[tuple[Family, list[PendingFile]]]:
        pending_by_family = ((family, family.pending_files()) for family in self._saving())
        return [(family, pending_files) for family, pending_files in pending_by_family if pending_files]

    def _write(self, pending_files: Sequence[PendingFile]) -> None:
        for pending in pending_files:
            pending.write(self._require_folder())

    def _write_and_report(self, pending_by_family: Sequence[tuple[Family, Sequence[PendingFile]]]) -> None:
        for family, pending_files in pending_by_family:
            started = time.perf_counter()
            try:
                self._write(pending_files)
            except TableError as error:
                self._due_at = time.monotonic() + _RETRY_S
                self._report_status("failed", family, time.perf_counter() - started, [str(error)])
            else:
                self._report_status("saved", family, time.perf_counter() - started)

    def is_writing(self) -> bool:
        """Whether a save is running on its own thread. Any thread."""
        writer = self._writer
        return writer is not None and writer.is_alive()

    def _join_writer(self) -> None:
        """Waits for the saving thread."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def _report_loaded(self, family: Family, started: float, notes: Sequence[str], *, refused: bool) -> float:
        took_s = time.perf_counter() - started
        self._report_status("warm" if family.entries else "cold", family, took_s, notes, refused=refused)
        return took_s

    def _report_status(
        self,
        moment: TableMoment,
        family: Family,
        took_s: float = 0.0,
        notes: Sequence[str] = (),
        *,
        refused: bool = False,
    ) -> None:
        self._report(
            TableStatus(
                moment,
                family.fingerprint,
                family.name,
                family.infos(self._folder),
                took_s,
                tuple(notes),
                refused,
            )
        )

    def _require_family(self) -> Family:
        if self._current is None:
            raise TableError("No model is loaded, so no table is in use.", "Load a model first.")
        return self._current

    def _require_folder(self) -> TableFolder:
        if self._folder is None:
            raise TableError("These tables are not kept on disk.")
        return self._folder


def _write_export(content: bytes, path: Path, folder: Path | None, *, replace: bool) -> Path:
    """Writes `content` to `path` and returns the absolute path. Raises `TableError`.

    Refuses to write into `folder`, which holds the tables themselves, and over anything but a regular file,
    which it overwrites only with `replace`.
    """
    try:
        target = path.expanduser()
        target = target.parent.resolve(strict=True) / target.name
        if folder is not None and target.parent == folder.resolve():
            raise TableError(
                f"{target.parent} is the folder of the tables themselves.", "Choose another folder."
            )
        if target.is_symlink() or (target.exists() and not target.is_file()):
            raise TableError(f"{target} is not a regular file.", "Choose another name.")
        if target.exists() and not replace:
            raise TableError(f"{target} already exists.", "Choose another name, or replace the file.")
        write_atomic(target, content)
    except (OSError, RuntimeError, ValueError) as error:
        raise TableError(
            f"{path} could not be written: {reason_of(error)}.",
            "Choose a folder that exists and can be written.",
        ) from error
    return target


def _read_import(path: Path, decode: Callable[[bytes], T]) -> tuple[T, bytes]:
    """The decoded file and its bytes. Raises `TableError`; the file is not changed.

    The file's name has no meaning: its checked header says which table it is.
    """
    try:
        content = read_file(path.expanduser(), MOST_BYTES)
        return decode(content), content
    except InvalidFileError as refusal:
        raise TableError(f"{path} {refusal}.", "Export the table again, or choose another file.") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise TableError(f"{path} could not be read: {reason_of(error)}.", "Check the path.") from error


def table_list(memory: TableMemory, request: str) -> TableList:
    """The answer to `list_tables`: learned and prebuilt tables. Reads every file that is not in memory."""
    tables, set_aside = memory.listing()
    learned, refused = prebuilt_listing()
    return TableList(request, str(tables_dir()), tables, set_aside + refused, learned)
