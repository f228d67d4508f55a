"""SavedFiles: the folder of saved sequences, one file per chat and model, within a limit of space.

The cache folder's `contexts` (mode 0700) holds safetensors files (0600). A name is made of hashes of the
chat's id and of the model's folder, so that `erase` needs nothing but the id. Files are replaced by one
rename, and a file that is open stays readable when it is replaced or removed: several processes may share the
folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from core.system.files import TEMPORARY, CacheFolder, open_regular, replacing
from core.system.paths import cache_dir
from core.system.private import make_folder

_SUFFIX = ".safetensors"
# Saving leaves at least this much of the disk to others.
_FREE_BYTES = 1 << 30
# A temporary file that was not written to for this long was left by a process that was killed.
_ABANDONED_S = 600.0


class SavedFiles(CacheFolder):
    """Files in `folder`; None: in the cache folder. Any thread."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder or cache_dir() / "contexts", _SUFFIX)

    def path(self, chat: str, model_folder: str) -> Path:
        """The file of a chat with the model in `model_folder`."""
        return self.folder / f"{_name(chat)}-{_ending(model_folder)}"

    def of_model(self, model_folder: str) -> list[Path]:
        """The files of all chats with the model in `model_folder`, the most recently used one first."""
        ending = f"-{_ending(model_folder)}"
        return [path for _, _, path in reversed(self.dated()) if path.name.endswith(ending)]

    def open(self, path: Path) -> BinaryIO | None:
        """The open file, which becomes the most recently used one; None if it does not open."""
        try:
            file = open_regular(path)
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return file

    def size_bytes(self, path: Path) -> int:
        try:
            return path.stat().st_size
        except OSError:
            return 0

    def reserve(self, path: Path, size_bytes: int, limit_bytes: int) -> str:
        """Makes space for a file of `size_bytes` that replaces `path`.

        The least recently used files are removed until all fit `limit_bytes`. Returns why the file must not
        be written; empty if it may. Raises `OSError`.
        """
        if size_bytes > limit_bytes:
            return f"the chat needs {_mb(size_bytes)} MB, and the limit is {_mb(limit_bytes)} MB"
        make_folder(self.folder)
        self.fit(limit_bytes - size_bytes, keep=path)
        if shutil.disk_usage(self.folder).free < size_bytes + _FREE_BYTES:
            return "the disk is almost full"
        return ""

    def writing(self, path: Path) -> AbstractContextManager[BinaryIO]:
        """A file that replaces `path` at the end of the block; raises `OSError`.

        Not synced: a file that a power failure damages is noticed by its checksums.
        """
        return replacing(path, durable=False)

    def clean(self, limit_bytes: int) -> None:
        """Removes files of killed processes, and files above the limit, which may have been lowered."""
        for modified_ns, _, path in self.dated():
            if path.name.endswith(TEMPORARY) and time.time() - modified_ns / 1e9 > _ABANDONED_S:
                self.remove(path)
        self.fit(limit_bytes)

    def erase(self, chats: Sequence[str]) -> int:
        """Removes the files of these chats, with all models. Returns how many remain."""
        return self.erase_named(*(f"{_name(chat)}-" for chat in chats))

    def usage(self) -> tuple[int, int]:
        """Number of files, and the size of all in bytes."""
        files = self.dated()
        return len(files), sum(size for _, size, _ in files)


def _name(chat: str) -> str:
    return _digest(chat)[:32]


def _ending(model_folder: str) -> str:
    return f"{_digest(model_folder)[:16]}{_SUFFIX}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.0f}"  # as in Settings
