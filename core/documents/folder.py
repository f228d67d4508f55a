"""Which files of a folder can be read as documents, and which are left out and why.

Looks at names only, opens nothing, follows no link, and ends soon in a folder of any size. Hidden files and
folders, and folders with generated files, are left out. Order is by name, as people count (`2` before `10`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from core.documents import strings
from core.documents.reading import shown_text
from core.documents.types import text_file
from core.errors import RequestError, reason_of

# Maximum number of documents for one message; each is read separately.
MOST_FILES = 100
# A folder with more entries is probably not meant to be read completely, such as a home folder.
MOST_ENTRIES = 20_000
_MOST_DEPTH = 12
_PROGRAMS_FOLDERS = frozenset(("node_modules", "__pycache__", "venv", "site-packages", "target", "build"))
_NUMBER = re.compile(r"(\d+)")


class Skipped(Struct, frozen=True):
    """A file or folder that was left out: its path inside the folder, and why."""

    name: str
    reason: str


class FolderListing(Struct, frozen=True):
    """Paths to read, and the omitted ones with reasons."""

    files: tuple[Path, ...]
    skipped: tuple[Skipped, ...]


def list_folder(
    folder: Path, wanted: Callable[[], bool] = lambda: True, most_files: int = MOST_FILES
) -> FolderListing:
    """The files in `folder`. Raises `RequestError` if it cannot be listed.

    `wanted` is called repeatedly; when it returns False, the files found until then are returned.
    """
    if (inside := text_file(folder)) != folder:
        return FolderListing((inside,), ())
    files: list[Path] = []
    skipped: list[Skipped] = []
    waiting, seen = [(folder, 0)], 0
    while waiting and wanted():
        here, depth = waiting.pop()
        try:
            with os.scandir(here) as scanned:
                entries = []
                for entry in scanned:
                    seen += 1
                    if seen > MOST_ENTRIES:
                        break
                    entries.append(entry)
        except OSError as error:
            why = reason_of(error)
            if here == folder:
                raise RequestError(
                    strings.folder_unreadable(shown_text(folder.name), why), strings.CHECK_FILE
                ) from None
            skipped.append(Skipped(name_in(here, folder), why))
            continue
        deeper: list[tuple[Path, int]] = []
        for entry in sorted(entries, key=lambda each: _order(each.name)):
            path = Path(entry.path)
            reason = _reason(entry, depth)
            if reason:
                skipped.append(Skipped(name_in(path, folder), reason))
            elif entry.is_dir(follow_symlinks=False) and text_file(path) == path:
                deeper.append((path, depth + 1))
            elif len(files) < most_files:
                files.append(text_file(path))
            else:
                skipped.append(Skipped(name_in(path, folder), strings.folder_full(most_files)))
        waiting += reversed(deeper)
        if seen > MOST_ENTRIES:
            skipped.append(Skipped("…", strings.folder_too_large(MOST_ENTRIES)))
            break
    return FolderListing(tuple(files), tuple(skipped))


def _reason(entry: os.DirEntry[str], depth: int) -> str:
    """Why `entry` is not read; empty if it is read."""
    if entry.is_symlink():
        return strings.IS_LINK
    if entry.name.startswith("."):
        return strings.IS_HIDDEN
    if entry.is_dir(follow_symlinks=False):
        if entry.name.casefold() in _PROGRAMS_FOLDERS:
            return strings.OF_PROGRAMS
        return strings.TOO_DEEP if depth >= _MOST_DEPTH else ""
    return "" if entry.is_file(follow_symlinks=False) else strings.NO_FILE


def name_in(path: Path, folder: Path) -> str:
    """Where `path` is in `folder`, as it can be shown and sent."""
    return shown_text(path.relative_to(folder).as_posix())


def _order(name: str) -> list[tuple[int, str]]:
    pieces = _NUMBER.split(name.casefold())
    return [(int(each) if each.isdecimal() and len(each) < 18 else -1, each) for each in pieces]
