"""`draftlight uninstall`: list and remove Draftlight's files in its data, cache and config folders.

Only files with the names below are removed, and folders only if they are empty then, because
`DRAFTLIGHT_HOME` may be a folder with other files. Links are removed and not followed, so models and
documents outside are kept.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from msgspec import Struct

from core.cli.arguments import confirmed
from core.errors import RequestError
from core.system.files import TEMPORARY
from core.system.paths import cache_dir, config_dir, data_dir
from core.system.private import FILE_MODE

# File name patterns in each folder with their content. A test runs the code that writes them.
_DATA = {
    "chats.*": "chats",
    "chats-*": "chats",
    "backups": "backups of the chats",
    "models": "models",
    "tables": "tables of the drafters",
    "lab": "measurements of the Lab",
    "requests.*": "requests to the local server",
    "requests-*": "requests to the local server",
    "preferences.json*": "preferences",
    f".*-????????{TEMPORARY}": "files that a killed process did not finish",
    "server.key": "key of the local server",
    "window.lock": "lock of the window",
    ".DS_Store": "view settings of the Finder",
}
_CACHE = {
    "profiles": "machine profiles",
    "families": "tokenizer families",
    "vectors": "vectors of documents",
    "contexts": "caches of chats",
    "heads": "unfinished training of heads",
    "lib": "patched libraries",
    "transformers.json": "import index",
    "digests.json": "digests of model files",
    ".DS_Store": "view settings of the Finder",
}
_CONFIG = {"config.toml": "defaults of the command line"}


class Item(Struct, frozen=True):
    """One file or folder to remove; `holds` is its content."""

    path: Path
    holds: str
    size_bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `draftlight uninstall`."""
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the files, and remove them after a confirmation. Exit status 1 if they were not removed."""
    items = find_items()
    if not items:
        print("Draftlight keeps no files in " + ", ".join(map(str, _folders())) + ".")
        return 0
    for item in items:
        print(f"{_size(item.size_bytes):>10}  {item.path}  ({item.holds})")
    total = _size(sum(item.size_bytes for item in items))
    print(f"\n{total} in total. Models and documents outside these folders are not touched.")
    with _nothing_running():
        if not options.yes and not confirmed("Remove these files? Chats and models are deleted for good."):
            print("Nothing was removed.")
            return 1
        failed = [problem for item in items if (problem := _remove(item.path))]
    for folder in _folders():
        with contextlib.suppress(OSError):  # missing or not empty
            folder.rmdir()
        left = sorted(folder.iterdir()) if folder.is_dir() else []
        if left:
            print(f"{folder} was kept: it holds other files ({left[0].name}).")
    with contextlib.suppress(OSError):
        if home := os.environ.get("DRAFTLIGHT_HOME"):
            Path(home).expanduser().rmdir()
    for problem in failed:
        print(f"draftlight: {problem}", file=sys.stderr)
    if not failed:
        print("Removed. To remove the program, delete its folder, or: pip uninstall draftlight")
    return 1 if failed else 0


def find_items() -> list[Item]:
    """Everything to remove, folder by folder."""
    found: dict[Path, Item] = {}
    for folder, patterns in ((data_dir(), _DATA), (cache_dir(), _CACHE), (config_dir(), _CONFIG)):
        for pattern, holds in patterns.items():
            for path in sorted(folder.glob(pattern)):
                found.setdefault(path, Item(path, holds, _bytes(path)))
    return list(found.values())


def _folders() -> list[Path]:
    return list(dict.fromkeys((data_dir(), cache_dir(), config_dir())))


@contextlib.contextmanager
def _nothing_running() -> Iterator[None]:
    """Hold the lock of the chats. Raises `RequestError` if a window holds it."""
    if not data_dir().is_dir():
        yield
        return
    try:
        lock = FileLock(data_dir() / "chats.lock", mode=FILE_MODE)
        lock.acquire(blocking=False)
    except Timeout:
        raise RequestError("Draftlight is running.", "Quit it, and run this command again.") from None
    except OSError as error:
        raise RequestError(
            f"{data_dir()} cannot be written to: {error.strerror}.", "Change its permissions."
        ) from None
    try:
        yield
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


def _remove(path: Path) -> str:
    """Remove a file, a link or a folder. Returns an error message, empty on success."""
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path)  # removes links in it, not their targets
    except OSError as error:
        return f"{error.filename or path} could not be removed: {error.strerror}."
    return ""


def _bytes(path: Path) -> int:
    """Size of a file or of all files in a folder, links not followed."""
    try:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return status.st_size
        return sum(_bytes(inside) for inside in path.iterdir())
    except OSError:
        return 0


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} kB"
