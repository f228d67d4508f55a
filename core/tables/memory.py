"""TableMemory: the life of the shared tables: warm-loaded, taught, saved, reset, taken along.

One object of the engine. A family is *opened* when a model of it loads: its lock is taken, its
saved tables and `auto`'s calibration are read, and from then on they are in memory for all models
of the family. Answers teach them through the drafters; `learned` is told after each. What changed
is saved some seconds after the last answer by a thread that works on copies, and by `close`.

Without a folder nothing is read or written: benches work on such a memory.

Invariants: no file of a family is written, renamed or erased without its lock; a second process
reads and says so. A file that cannot be used never stops anything: it is refused with a note and
the one before it is tried. Every method belongs to the engine's thread; `say` is also called by
the thread that saves.

Tables taken along: one file out to where a person said, one file in from there.

The name of an imported file means nothing: where it goes follows from its checked header alone.

Every table there is, in one record: those that chats teach and those learned beforehand.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from core.drafting.calibration import Calibration
from core.drafting.ngram_table import NgramTables
from core.errors import TableError
from core.events import Change, TableInfo, TableList, TableMoment, TableStatus
from core.settings import Settings
from core.system.paths import tables_dir
from core.tables.container import Refused, read_file, write_whole
from core.tables.family import Family, Page, read_table, saved_info
from core.tables.folder import TableFolder, TableKey
from core.tables.prebuilt import erase_built, prebuilt_listing
from core.tables.table_file import MOST_BYTES, SavedTable, decode_table, encode_table

T = TypeVar("T")

# After a save that failed; the disk may be free again by then.
_RETRY_S = 60.0
_WRITING_S = 0.05


class Done(Struct, frozen=True):
    """What a command did; see `TableDone`."""

    family: str
    family_name: str
    entries: int
    files: int
    took_s: float
    path: str = ""
    notes: tuple[str, ...] = ()


class TableMemory:
    """`folder` None keeps everything in memory only. `say` gets what happens unasked."""

    def __init__(
        self, folder: TableFolder | None = None, say: Callable[[TableStatus], None] = lambda status: None
    ) -> None:
        self._folder = folder
        self._say = say
        self._tables = NgramTables()
        self._families: dict[str, Family] = {}
        self._current: Family | None = None
        self._writer: threading.Thread | None = None
        self._due_at: float | None = None

    # ---- a model comes

    def open(self, family: str, family_name: str, vocabulary: int, model: str) -> None:
        """A model of `family` was loaded: its tables are warm from now on. Raises nothing."""
        started = time.perf_counter()
        known = self._families.get(family)
        current = known or Family(family, family_name, vocabulary, self._tables)
        self._current = self._families[family] = current
        current.model, current.name = model, family_name
        notes: list[str] = []
        refused = False
        if self._folder is not None and (known is None or known.why_not_saved):
            current.why_not_saved = self._folder.lock(family)
            notes = current.read(self._folder)
            refused = bool(notes)
            if current.why_not_saved:
                notes.append(f"What is learned now is not saved: {current.why_not_saved}.")
        self._say_loaded(current, started, notes, refused=refused)

    def forget(self) -> None:
        """Drop what is in memory and not saved; what is saved is read again."""
        current, self._families, self._tables, self._due_at = self._current, {}, NgramTables(), None
        if current is not None:
            self.open(current.fingerprint, current.name, current.vocabulary, current.model)

    # ---- answers

    @property
    def tables(self) -> NgramTables:
        """The tables that all requests share."""
        return self._tables

    def tables_for(self, settings: Settings) -> NgramTables:
        """The tables for one request: the shared ones, or copies if it must leave no trace."""
        return self._tables if settings.tables.learn else self._tables.private_copies()

    def calibration_for(self, settings: Settings) -> Calibration:
        """What `auto` learned about its guesses in the family's answers: the shared one, or a copy."""
        shared = self._current.calibration if self._current else Calibration()
        if settings.tables.learn:
            return shared
        copy = Calibration()
        copy.restore(shared.state())
        return copy

    def changes(self, settings: Settings) -> tuple[Change, ...]:
        """The change of `tables.learn`, if what an answer teaches will be lost with this process."""
        current = self._current
        if current is None or not settings.tables.learn or not current.why_not_saved:
            return ()
        return (Change("tables.learn", "on", "on, but not saved", current.why_not_saved),)

    def learned(self, settings: Settings) -> None:
        """An answer ended; the drafters taught what they were given."""
        current = self._current
        if current is None or not settings.tables.learn:
            return
        current.learn(datetime.date.today().isoformat())
        if not current.is_saved:
            self._due_at = time.monotonic() + settings.tables.autosave_s
            self._status("learned", current)

    # ---- saving

    def due_s(self) -> float | None:
        """Seconds until something should be saved; None if there is nothing to wait for."""
        if self._due_at is None or all(family.is_saved for family in self._saving()):
            return None
        least = _WRITING_S if self.is_writing() else 0.0
        return max(least, self._due_at - time.monotonic())

    def save_soon(self) -> None:
        """Save what changed, by a thread that works on copies; nothing if one is at it."""
        if self.is_writing():
            return
        self._due_at = None
        work = self._work()
        if work:
            self._writer = threading.Thread(target=self._write_and_say, args=(work,), name="tables")
            self._writer.start()

    def save(self, *, all_of_it: bool = False) -> Done:
        """Save what changed, now. Raises `TableError`, also if this process must not save.

        `all_of_it` saves the current family's tables even if nothing changed.
        """
        started = time.perf_counter()
        current = self._opened()
        self._kept()
        if current.why_not_saved:
            raise TableError(f"The tables are not saved: {current.why_not_saved}.")
        self._wait()
        pages = [page for _, pages in self._work() for page in pages]
        if all_of_it:
            pages = current.pages(all_of_it=True)
        self._write(pages)
        self._due_at = None
        took_s = time.perf_counter() - started
        self._status("saved", current, took_s)
        entries = sum(page.entries for page in pages)
        return Done(current.fingerprint, current.name, entries, len(pages), took_s)

    def close(self) -> None:
        """Save what changed and let go of the locks. Raises nothing; a failure is said."""
        self._wait()
        self._due_at = None
        self._write_and_say(self._work())
        for family in self._families:
            if self._folder is not None:
                self._folder.unlock(family)
        self._families, self._current, self._tables = {}, None, NgramTables()

    # ---- commands

    def listing(self) -> tuple[tuple[TableInfo, ...], tuple[str, ...]]:
        """Every table in memory and on disk, the current family's first; and what cannot be used."""
        for family in self._families.values():
            family.lives()
        infos = [info for family in self._families.values() for info in family.infos(self._folder)]
        refused: list[str] = []
        if self._folder is not None:
            held = {(info.family[:16], info.n, info.figures.slots) for info in infos}
            keys = self._folder.keys()
            for key in (key for key in keys if (key.family, key.n, key.slots) not in held):
                saved, found = read_table(self._folder, key)
                refused += found.notes
                if saved is not None:
                    previous = self._folder.has_previous(key.file)
                    infos.append(saved_info(saved.header, size_bytes=found.size_bytes, has_previous=previous))
            refused += self._folder.set_aside()
        current = self._current.fingerprint if self._current else ""
        infos.sort(key=lambda info: (info.family != current, info.family_name.lower(), info.figures.slots))
        return tuple(infos), tuple(refused)

    def load(self, *, previous: bool = False) -> Done:
        """Read the current family's saved tables again. Raises `TableError`.

        What was learned since the last save is dropped. `previous` goes one generation back, in
        memory and on disk.
        """
        started = time.perf_counter()
        current, folder = self._opened(), self._kept()
        self._wait()
        if previous:
            names = [*(key.file for key in folder.keys(current.fingerprint)), current.calibration_file]
            older = [name for name in names if folder.has_previous(name)]
            if not older:
                raise TableError(f"There is no previous generation of the {current.name} tables.")
            with folder.writing(current.fingerprint):
                for name in older:
                    folder.go_back(name)
        notes = current.read(folder)
        took_s = self._say_loaded(current, started, notes, refused=bool(notes))
        files = len(current.lives())
        return Done(current.fingerprint, current.name, current.entries, files, took_s, notes=tuple(notes))

    def reset(self, family: str) -> Done:
        """Forget all of `family`, a fingerprint: memory, files, older generations, what was set aside, and
        what was built here beforehand.

        Raises `TableError`; then nothing in memory was forgotten.
        """
        started = time.perf_counter()
        self._wait()
        tables = [info for info in self.listing()[0] if info.family == family]
        files = 0
        if self._folder is not None:
            with self._folder.writing(family):
                files = self._folder.erase(family) + erase_built(self._folder.path / "built", family)
        known = self._families.get(family)
        if known is not None:
            known.forget()
            self._status("cold", known)
        entries = sum(info.figures.used for info in tables)
        name = known.name if known else tables[0].family_name if tables else ""
        return Done(family, name, entries, files, time.perf_counter() - started)

    def export(self, family: str, n: int, slots: int, path: Path, *, replace: bool = False) -> Done:
        """Write a copy of one table to `path`. Raises `TableError`."""
        started = time.perf_counter()
        key, known = TableKey(family, n, slots), self._families.get(family)
        life = known.life(key) if known else None
        if known is not None and life is not None:
            content, entries, name = known.encoded(life), life.table.used, known.name
        else:
            saved, found = read_table(self._kept(), key)
            if saved is None:
                raise TableError(" ".join(found.notes) or "There is no such table.", "List the tables first.")
            content, entries, name = encode_table(saved), saved.header.figures.used, saved.header.family_name
        within = self._folder.path if self._folder else None
        written = _write_export(content, path, within, replace=replace)
        return Done(family, name, entries, 1, time.perf_counter() - started, str(written))

    def import_(self, path: Path) -> Done:
        """Take the file at `path` as its family's table; the one it had becomes the previous.

        Raises `TableError`.
        """
        started = time.perf_counter()
        folder = self._kept()
        self._wait()

        def decode(content: bytes) -> SavedTable:
            table = decode_table(content)
            known = self._families.get(table.header.family)
            return decode_table(content, vocabulary=known.vocabulary) if known else table

        saved, content = _read_import(path, decode)
        header = saved.header
        known = self._families.get(header.family)
        with folder.writing(header.family):
            if known is not None:
                self._write(known.pages())
            folder.write(TableKey(header.family, header.n, header.slots).file, content)
        if known is not None:
            known.take(saved, len(content))
            self._status("warm", known)
        took_s = time.perf_counter() - started
        return Done(header.family, header.family_name, header.figures.used, 1, took_s, str(path))

    # ---- inside

    def _saving(self) -> list[Family]:
        """The families that this process saves."""
        if self._folder is None:
            return []
        return [family for family in self._families.values() if not family.why_not_saved]

    def _work(self) -> list[tuple[Family, list[Page]]]:
        work = ((family, family.pages()) for family in self._saving())
        return [(family, pages) for family, pages in work if pages]

    def _write(self, pages: Sequence[Page]) -> None:
        for page in pages:
            content = page.content()
            self._kept().write(page.name, content)
            page.saved(len(content), time.time())

    def _write_and_say(self, work: Sequence[tuple[Family, Sequence[Page]]]) -> None:
        for family, pages in work:
            started = time.perf_counter()
            try:
                self._write(pages)
            except TableError as error:
                self._due_at = time.monotonic() + _RETRY_S
                self._status("failed", family, time.perf_counter() - started, [str(error)])
            else:
                self._status("saved", family, time.perf_counter() - started)

    def is_writing(self) -> bool:
        """Whether a save is under way on its own thread. Any thread may ask."""
        writer = self._writer
        return writer is not None and writer.is_alive()

    def _wait(self) -> None:
        """Until nobody writes."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def _say_loaded(self, family: Family, started: float, notes: Sequence[str], *, refused: bool) -> float:
        took_s = time.perf_counter() - started
        warm = family.entries or family.is_calibrated
        self._status("warm" if warm else "cold", family, took_s, notes, refused=refused)
        return took_s

    def _status(
        self,
        moment: TableMoment,
        family: Family,
        took_s: float = 0.0,
        notes: Sequence[str] = (),
        *,
        refused: bool = False,
    ) -> None:
        self._say(
            TableStatus(
                moment,
                family.fingerprint,
                family.name,
                family.infos(self._folder),
                family.is_calibrated,
                took_s,
                tuple(notes),
                refused,
            )
        )

    def _opened(self) -> Family:
        if self._current is None:
            raise TableError("No model is loaded, so no table is in use.", "Load a model first.")
        return self._current

    def _kept(self) -> TableFolder:
        if self._folder is None:
            raise TableError("These tables are not kept on disk.")
        return self._folder


def _write_export(content: bytes, path: Path, folder: Path | None, *, replace: bool) -> Path:
    """Write `content` to `path` and return where that is, in full. Raises `TableError`.

    Nothing is written into `folder`, where the tables themselves live, nor over anything but a
    plain file, and over that only with `replace`.
    """
    try:
        target = path.expanduser()
        target = target.parent.resolve(strict=True) / target.name
        if folder is not None and target.parent == folder.resolve():
            raise TableError(f"{target.parent} holds the tables themselves.", "Choose another folder.")
        if target.is_symlink() or (target.exists() and not target.is_file()):
            raise TableError(f"{target} is not a plain file.", "Choose another name.")
        if target.exists() and not replace:
            raise TableError(f"{target} exists already.", "Choose another name, or replace it.")
        write_whole(target, content)
    except (OSError, RuntimeError, ValueError) as error:
        raise TableError(
            f"{path} could not be written: {getattr(error, 'strerror', None) or error}.",
            "Choose a folder that exists and can be written.",
        ) from error
    return target


def _read_import(path: Path, decode: Callable[[bytes], T]) -> tuple[T, bytes]:
    """What `decode` makes of the file, and its bytes. Raises `TableError`; the file is left alone."""
    try:
        content = read_file(path.expanduser(), MOST_BYTES)
        return decode(content), content
    except Refused as refusal:
        raise TableError(f"{path} {refusal}.", "Export the table again, or choose another file.") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise TableError(
            f"{path} could not be read: {getattr(error, 'strerror', None) or error}.",
            "Check the path.",
        ) from error


def table_list(memory: TableMemory, request: str) -> TableList:
    """The answer to `list_tables`. Reads every file that is not in memory."""
    tables, set_aside = memory.listing()
    learned, refused = prebuilt_listing()
    return TableList(request, str(tables_dir()), tables, set_aside + refused, learned)
