"""Copies of images in a folder next to an exported file: `Chat.md` has its images in `Chat-images`.

An import reads them from there. No existing file is replaced, since the folder may be one of the user's. Any
thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import quote

from app.session.images import ImageArchive, Stoppable
from app.store.chat_files import file_name
from core.documents.limits import MOST_IMAGE_BYTES
from core.errors import RequestError
from core.events import Image
from core.system.files import read_regular, write_atomic

_SUFFIX = "-images"
_NAMELESS = "image"


def folder_beside(file: Path) -> Path:
    """The folder of the images of an exported file."""
    return file.with_name(f"{file.stem}{_SUFFIX}")


class ImageCopies:
    """The images of one exported file."""

    def __init__(self, file: Path, archive: ImageArchive) -> None:
        self._folder = folder_beside(file)
        self._archive = archive
        self._names: dict[str, str] = {}
        self._made: list[Path] = []  # in the order in which they were made

    def __len__(self) -> int:
        return len(self._names)

    def add(self, image: Image) -> str:
        """Copy the image and return its path from the file, as in a link; empty if the image is missing.

        Raises `OSError`, which names the copy.
        """
        if image.hash not in self._names:
            try:
                data = read_regular(self._archive.path(image.hash), MOST_IMAGE_BYTES)
            except FileNotFoundError:
                return ""
            self._names[image.hash] = self._write(file_name(image.name) or _NAMELESS, data)
        return quote(f"{self._folder.name}/{self._names[image.hash]}")

    def undo(self) -> None:
        """Remove the copies that were made. Ignores errors."""
        for path in reversed(self._made):
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()

    def _write(self, name: str, data: bytes) -> str:
        if not self._folder.exists():
            self._folder.mkdir()
            self._made.append(self._folder)
        stem, suffix = os.path.splitext(name)
        number, path = 1, self._folder / name
        while path.exists():
            if path not in self._made and _has(path, data):
                return path.name
            number += 1
            path = path.with_name(f"{stem} ({number}){suffix}")
        write_atomic(path, data, private=False)
        self._made.append(path)
        return path.name


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and read_regular(path, len(data)) == data
    except OSError:
        return False


def keep_beside(
    file: Path,
    wanted: Collection[str],
    archive: ImageArchive,
    started: Callable[[Stoppable], object],
) -> None:
    """Keep the images with the hashes `wanted` that are in the folder next to an imported file.

    Blocks while child processes read the files there; `started` gets each reading. Raises `StoppedError`.
    """
    missing = {hash for hash in wanted if not archive.is_kept(hash)}
    folder = folder_beside(file)
    try:
        paths = sorted(each for each in folder.iterdir() if each.is_file()) if missing else []
    except OSError:
        return
    for path in paths:
        if not missing:
            return
        with contextlib.suppress(RequestError):  # no image, or damaged
            missing.discard(archive.keep(path, path.name, started).hash)
