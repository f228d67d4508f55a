"""Files and folders that only their owner can read, whatever the umask: 0600 and 0700.

Everything in the data, cache and config folders is made with these functions. Files that libraries make
(locks, tensors) are passed to `tighten` afterwards. Files that a person exports elsewhere are not private.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from core.system.paths import cache_dir, config_dir, data_dir, shown

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# The entries of DRAFTLIGHT_HOME that Draftlight makes.
_CONFIG = "config.toml"


def make_folder(folder: Path) -> Path:
    """Creates `folder` and its missing parents for their owner only. Returns `folder`.

    Raises `OSError`, also for a link that leads nowhere, such as to a volume that is not mounted.
    """
    missing = []
    for each in (folder, *folder.parents):
        if each.exists():
            break
        missing.append(each)
    for each in reversed(missing):
        if each.is_symlink():
            reason = f"it is a link to {shown(os.readlink(each))}, which does not exist"
            raise FileNotFoundError(errno.ENOENT, reason, str(each))
        with contextlib.suppress(FileExistsError):  # another process was first
            each.mkdir(FOLDER_MODE)
            each.chmod(FOLDER_MODE)
    folder.mkdir(exist_ok=True)  # raises the error of a file in its place
    return folder


def make_file(path: Path) -> Path:
    """Creates `path` empty if it is missing, else removes the access of others. Returns it. Raises `OSError`.

    For files that a library opens by name. SQLite gives the companion files of a database its mode. An
    existing file is not opened, because closing it would release this process's locks on it.
    """
    try:
        os.close(opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    except FileExistsError:
        tighten(path)
    return path


def opener(path: str, flags: int) -> int:
    """Opens `path` for its owner only: `open(path, "ab", opener=private.opener)`."""
    descriptor = os.open(path, flags, FILE_MODE)
    with contextlib.suppress(OSError):  # another user's file, or a file system without modes
        if os.fstat(descriptor).st_mode & _OTHERS or flags & os.O_CREAT:
            os.fchmod(descriptor, FILE_MODE)
    return descriptor


def tighten(*paths: Path) -> None:
    """Removes the access of others from `paths` and everything below them.

    Links are not followed, and files of other users are left unchanged. Errors are ignored: a file system
    without modes must not prevent the start.
    """
    waiting = [os.fspath(path) for path in paths]
    while waiting:
        path = waiting.pop()
        with contextlib.suppress(OSError):
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
                continue
            if found.st_mode & _OTHERS:
                os.chmod(path, stat.S_IMODE(found.st_mode) & ~_OTHERS)
            if stat.S_ISDIR(found.st_mode):
                with os.scandir(path) as entries:
                    waiting += (entry.path for entry in entries)


def tighten_home() -> None:
    """Removes the access of others from Draftlight's folders. Called when the app or a command starts.

    DRAFTLIGHT_HOME may be a folder with other content, such as a person's home. It is tightened only if
    everything in it is Draftlight's.
    """
    if not os.environ.get("DRAFTLIGHT_HOME"):
        tighten(*(_target(folder) for folder in (data_dir(), cache_dir(), config_dir())))
        return
    home = config_dir()
    ours = {data_dir().name, cache_dir().name, _CONFIG}
    tighten(_target(data_dir()), _target(cache_dir()), _target(home / _CONFIG))
    with contextlib.suppress(OSError):
        mode = home.stat()
        if mode.st_uid == os.geteuid() and mode.st_mode & _OTHERS and ours.issuperset(os.listdir(home)):
            home.chmod(stat.S_IMODE(mode.st_mode) & ~_OTHERS)


def _target(folder: Path) -> Path:
    """A link to a folder on another volume, followed."""
    return Path(os.path.realpath(folder))
