"""Files: replacement by one rename, JSON files under the cache folder that can be made again, API keys.

A replaced file is written to a temporary file in the same folder, synced, and renamed: after a crash or on a
full disk the old file is unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar
from uuid import uuid4

import msgspec

from core.errors import RequestError
from core.system.paths import cache_dir, shown
from core.system.prepared import prepared
from core.system.private import make_folder, opener

NOT_REGULAR = "it is a pipe, a socket or a device"
# The end of a temporary file's name; a process that was killed leaves such a file.
TEMPORARY = ".tmp"
_NAME_BYTES = 160
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS


@contextlib.contextmanager
def replacing(
    path: Path, *, private: bool = True, keep: Path | None = None, durable: bool = True
) -> Iterator[BinaryIO]:
    """Opens a temporary file that replaces `path` at the end of the block, after a `sync` if `durable`.

    Its `name` is its path, for libraries that write to a path.

    `private`: only its owner can read the new file; otherwise, for exports, it has the permissions of the old
    file or the process's default. `keep`: new path of the old file; for a moment there is none at `path`. A
    link is followed. After an exception the old file is unchanged and the temporary file is removed. Raises
    `OSError`, which names `path`.
    """
    # Path.resolve raises RuntimeError for a link that leads to itself; such a link is replaced.
    target = Path(os.path.realpath(path))
    # Unique, because another thread may replace the same file; short, for names near the limit of 255 bytes.
    temporary = target.with_name(f"{temporary_prefix(target)}{uuid4().hex[:8]}{TEMPORARY}")
    moved = False
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        opened = opener(str(temporary), flags) if private else os.open(temporary, flags, 0o666)
        with open(temporary, "wb", opener=lambda *_: opened) as file:  # unlike fdopen's, it has a name
            yield file
            file.flush()
            if durable:
                sync(file.fileno())
        if not private and target.exists():
            shutil.copymode(target, temporary)
        if keep is not None:
            with contextlib.suppress(FileNotFoundError):
                os.replace(target, keep)
                moved = True
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if moved and keep is not None:
            with contextlib.suppress(OSError):
                os.replace(keep, target)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise
    if durable:
        sync_folder(target.parent)


def temporary_prefix(path: Path) -> str:
    """Prefix of the names of temporary files for `path`."""
    name = path.name.encode()[:_NAME_BYTES].decode(errors="ignore")
    return f".{name}-"


def write_atomic(
    path: Path, content: bytes, *, private: bool = True, keep: Path | None = None, durable: bool = True
) -> None:
    """Replaces the content of `path`; parameters and errors as in `replacing`."""
    with replacing(path, private=private, keep=keep, durable=durable) as file:
        file.write(content)


def sync(descriptor: int) -> None:
    """Writes a file to the disk, so that it survives a loss of power. Raises `OSError`.

    On macOS `fsync` ends at the disk's own cache. Volumes without F_FULLFSYNC, such as SMB's, get `fsync`.
    """
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Makes renames durable. Ignored where unsupported: the files are complete in either case."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)


class FileTooLargeError(RequestError, code="file-too-large"):
    """A given file has more bytes than are read of it."""


def read_limited(path: Path, most_bytes: int) -> bytes:
    """The content of a file, pipe or device that a person names. Reads at most `most_bytes` and one more.

    Raises `OSError`, and `FileTooLargeError` beyond the limit, also for a source without an end.
    """
    with path.open("rb") as file:
        return read_stream(file, most_bytes, shown(str(path)))


def open_regular(path: Path) -> BinaryIO:
    """Opens a file to read. Raises `OSError`, also for a pipe, a socket and a device, which may have no end.

    Does not block: opening a pipe waits for its writer otherwise.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:  # a socket
            raise
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path)) from None
    file = os.fdopen(descriptor, "rb")
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        file.close()
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
    return file


def read_regular(path: Path, most_bytes: int) -> bytes:
    """As `read_limited`, of `open_regular`."""
    with open_regular(path) as file:
        return read_stream(file, most_bytes, shown(str(path)))


def read_stream(file: BinaryIO, most_bytes: int, name: str) -> bytes:
    """As `read_limited`, of an open file."""
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise FileTooLargeError(
            f"{name} has more than {most_bytes // 2**20:,} MB, the most that is read.", "Use a shorter file."
        )
    return content


def set_aside(path: Path, why: str, also: Sequence[str] = ()) -> Path:
    """Renames a file to the first free name `NAME-WHY`, `NAME-WHY-1`, …; returns the new path.

    `also`: ends of the names of files next to it, which are renamed first, so that a process that is killed
    in between continues with the same number. Such a file that was renamed before is kept. Raises `OSError`.
    """
    numbers = ("" if number == 0 else f"-{number}" for number in count())
    names = (path.with_name(f"{path.stem}-{why}{number}{path.suffix}") for number in numbers)
    free = next(name for name in names if not os.path.lexists(name))
    for end in (*also, ""):
        with contextlib.suppress(FileNotFoundError):
            if os.path.lexists(f"{free}{end}"):
                os.unlink(f"{path}{end}")
            else:
                os.rename(f"{path}{end}", f"{free}{end}")
    sync_folder(path.parent)
    return free


T = TypeVar("T")


def load_json(path: Path, of: type[T]) -> T | None:
    """The file's content as `of`; None if the file is missing, unreadable or of another shape."""
    try:
        with open_regular(path) as file:
            return msgspec.json.decode(file.read(), type=prepared(of))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def save_json(path: Path, value: Any) -> None:
    """Replaces `path` with `value` as JSON if the disk allows it.

    For files that can be made again: losing one costs time, never an answer.
    """
    with contextlib.suppress(OSError):
        make_folder(path.parent)
        write_atomic(path, msgspec.json.format(msgspec.json.encode(value)), durable=False)


class Keyed(Protocol):
    """A value that names its own key."""

    @property
    def key(self) -> str: ...


K = TypeVar("K", bound=Keyed)


class JsonStore(Generic[K]):
    """One JSON file per key in the cache's `profiles` folder.

    `name` starts the file names and changes with the meaning of the content, so that files of other versions
    are ignored.
    """

    def __init__(self, name: str, of: type[K]) -> None:
        self._name = name
        self._of = of

    def load(self, key: str) -> K | None:
        """The saved value of `key`; None if there is none."""
        held = load_json(self._path(key), self._of)
        return held if held is not None and held.key == key else None

    def save(self, value: K) -> bool:
        """Saves `value` under its key. True: one that the disk does not take counts in this process."""
        save_json(self._path(value.key), value)
        return True

    def all(self) -> list[K]:
        """All readable values, ordered by file name."""
        files = sorted((cache_dir() / "profiles").glob(f"{self._name}-*.json"))
        return [held for path in files if (held := load_json(path, self._of)) is not None]

    def _path(self, key: str) -> Path:
        return cache_dir() / "profiles" / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


# ---- folders of large files that can be made again


class CacheFolder:
    """Files of one suffix in `folder`, whose least recently used ones are removed first. Any thread.

    Several processes may share the folder. A process that was killed leaves temporary files, which count.
    """

    def __init__(self, folder: Path, suffix: str) -> None:
        self.folder = folder
        self._suffix = suffix

    def dated(self) -> list[tuple[int, int, Path]]:
        """All files with the time of their last use in ns and their sizes, ascending."""
        found = []
        for path in self._paths():
            with contextlib.suppress(OSError):  # another process removed it
                stat = path.stat()
                found.append((stat.st_mtime_ns, stat.st_size, path))
        return sorted(found)

    def fit(self, limit_bytes: int, keep: Path | None = None) -> None:
        """Removes the least recently used files, except `keep`, until the others fit `limit_bytes`."""
        files = [each for each in self.dated() if each[2] != keep]
        used = sum(size for _, size, _ in files)
        for _, size, path in files:
            if used <= limit_bytes:
                return
            self.remove(path)
            used -= size

    def remove(self, path: Path) -> bool:
        """Removes a file if it exists. Returns whether it no longer exists."""
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def erase_named(self, *beginnings: str) -> int:
        """Removes the files whose names start with one of `beginnings`. Returns how many remain."""
        found = [path for path in self._paths() if path.name.lstrip(".").startswith(beginnings)]
        return sum(not self.remove(path) for path in found)

    def erase_all(self) -> int:
        """Removes all files. Returns how many remain."""
        return self.erase_named("")

    def _paths(self) -> list[Path]:
        temporary = self.folder.glob(f".*{self._suffix}-*{TEMPORARY}")
        return [*self.folder.glob(f"*{self._suffix}"), *temporary]


# ---- files of API keys, readable by their owner only; keys are never logged

_BYTES = 32
_LEAST_CHARACTERS = 16
_MOST_BYTES = 4096


class KeyFileError(RequestError, code="bad-key-file"):
    """The key file is unusable."""


def new_key() -> str:
    """A random API key."""
    return f"dl-{secrets.token_urlsafe(_BYTES)}"


def read_key(path: Path) -> str:
    """The key in `path`. Raises `KeyFileError`, also if other users can read the file."""
    try:
        with open_regular(path) as file:
            others = os.name == "posix" and os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            key = file.read(_MOST_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not plain text"
        raise KeyFileError(f"Cannot read {path}: {why}.", "Choose a file that contains a key.") from None
    if others:
        raise KeyFileError(f"{path} is readable by other users.", f"Run: chmod 600 {path}")
    if len(key) < _LEAST_CHARACTERS or any(letter.isspace() for letter in key):
        raise KeyFileError(
            f"{path} does not contain a key: at least {_LEAST_CHARACTERS} characters without spaces.",
            "Remove the file to create a new key.",
        )
    return key


def write_key(path: Path, key: str) -> None:
    """Replaces `path`, also a link, by a private file with `key`. Raises `KeyFileError`; the old is kept."""
    new = path.with_name(f"{temporary_prefix(path)}{uuid4().hex[:8]}{TEMPORARY}")
    try:
        make_folder(path.parent)
        write_atomic(new, f"{key}\n".encode())
        try:
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise KeyFileError(
            f"Cannot write {path}: {error.strerror}.",
            "Check that you may write to its folder, and that its disk has free space.",
        ) from None


def key_of(path: Path) -> tuple[str, bool]:
    """The key in `path`, and whether it was created now because the file did not exist."""
    if path.exists():
        return read_key(path), False
    key = new_key()
    write_key(path, key)
    return key, True
