"""ImageFolder: the images of all chats, each once, named by the hash of its pixels.

    images/HASH        the original bytes, with their metadata
    images/HASH.png    a thumbnail of at most 320 x 320 pixels
    images/.….tmp      a file that is being kept

A file is copied first and then read from the copy, so that the description matches the kept file. Chats refer
to images by hash, and so do the chats of the database's backups: each file exists once.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from uuid import uuid4

from app.session.images import KeptImage, Stoppable
from app.store import strings
from app.store.faults import StoreError, is_full
from core.documents import limits
from core.documents import strings as document_strings
from core.documents.client import ImageReading
from core.documents.reading import opened_file, shown_text
from core.errors import RequestError, reason_of
from core.events import Image
from core.system.files import TEMPORARY, FileTooLargeError, read_regular, sync, sync_folder, write_atomic
from core.system.paths import shown
from core.system.private import make_folder, opener

_HASH = re.compile(r"[0-9a-f]{64}")
_THUMBNAIL = ".png"
_UNKNOWN = "unknown"
_MOST_THUMBNAIL_BYTES = 4 * 1024 * 1024


class ImageFolder:
    """Implements `app.session.images.ImageArchive`; creates `folder` with the first image.

    None: a folder that is removed at `close`.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder.absolute() if folder else None
        self._is_temporary = folder is None
        self._lock = threading.Lock()
        self._writing: set[str] = set()  # names of temporary files
        # `Library` asks `saved` only while there are some; read on any thread.
        self.unsaved: set[str] = set()  # kept in this run, and not yet in a chat that was saved
        self.held: dict[str, list[bytes | None]] = {}  # erased, with the bytes of both files
        self._undoable: set[str] = set()

    @property
    def folder(self) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="draftlight-images-"))
            return self._folder

    def close(self) -> None:
        """Removes a folder that lasts for this run only."""
        if self._is_temporary and self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def keep(
        self,
        source: Path | bytes,
        name: str,
        started: Callable[[Stoppable], object] = lambda reading: None,
    ) -> Image:
        """Keeps a file, or the bytes of one, and returns its image; see `ImageArchive`.

        The images of files with the same pixels are one. Raises `StoreError` if the disk does not take it;
        then nothing is kept.
        """
        name = shown_text(name)
        temporary = ""
        try:
            folder = make_folder(self.folder)
            temporary = f".{uuid4().hex}{TEMPORARY}"
            with self._lock:
                self._writing.add(temporary)
            _copy(source, name, folder / temporary)
            reading = ImageReading(folder / temporary, name=name)
            started(reading)
            found, thumbnail = reading.with_thumbnail()
            with self._lock:  # first, so that no sweep takes it for an orphan
                self.unsaved.add(found.hash)
            write_atomic(folder / f"{found.hash}{_THUMBNAIL}", thumbnail)
            os.replace(folder / temporary, folder / found.hash)
            sync_folder(folder)
        except OSError as error:
            raise self._failure(name, error) from error
        finally:
            if temporary:
                with contextlib.suppress(OSError):
                    (self.folder / temporary).unlink(missing_ok=True)
                with self._lock:
                    self._writing.discard(temporary)
        return Image(
            name, str(self.path(found.hash)), found.hash, found.width, found.height, 0, found.left_out
        )

    def path(self, hash: str) -> Path:
        """Returns where the image is, or would be; a path without a file if `hash` is not a hash."""
        return self.folder / (hash if _HASH.fullmatch(hash) else _UNKNOWN)

    def is_kept(self, hash: str) -> bool:
        return self.path(hash).is_file()

    def thumbnail(self, hash: str) -> bytes | None:
        """Returns a PNG of at most 320 x 320 pixels; None if it is missing or not ours."""
        return _read(self.path(hash).with_suffix(_THUMBNAIL), _MOST_THUMBNAIL_BYTES)

    def listed(self) -> Sequence[KeptImage]:
        """Returns all kept images with the bytes of both files, the largest first."""
        sizes: dict[str, int] = {}
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if (hash := entry.name.removesuffix(_THUMBNAIL)) and _HASH.fullmatch(hash):
                    with contextlib.suppress(OSError):  # erased meanwhile
                        sizes[hash] = sizes.get(hash, 0) + entry.stat(follow_symlinks=False).st_size
        return sorted(
            (KeptImage(*each) for each in sizes.items()), key=lambda one: (-one.size_bytes, one.hash)
        )

    # ---- for `Library`

    def saved(self, hashes: Iterable[str]) -> None:
        """Notes that a chat with these images is saved, or waits for it. Those that were erased and held are
        written again; where that fails they are missing, as the chat then shows.
        """
        with self._lock:
            for hash in hashes:
                self.unsaved.discard(hash)
                if files := self.held.get(hash):
                    with contextlib.suppress(OSError):
                        for path, data in zip(self._files(hash), files, strict=True):
                            if data is not None and not path.exists():
                                write_atomic(path, data)

    def hold(self, hashes: Iterable[str]) -> None:
        """Lets these images stay in memory when they are erased, and no others."""
        with self._lock:
            self._undoable, self.held = set(hashes), {}

    def erase(self, hashes: Iterable[str]) -> None:
        """Removes those of the images that are not unsaved. Raises `OSError` if one cannot be removed."""
        with self._lock:
            for hash in hashes:
                if hash in self.unsaved:
                    continue
                files = self._files(hash)
                if hash in self._undoable and hash not in self.held:  # a failed attempt is repeated
                    self.held[hash] = [_read(path, limits.MOST_IMAGE_BYTES) for path in files]
                for path in files:
                    path.unlink(missing_ok=True)

    def _files(self, hash: str) -> tuple[Path, Path]:
        """Returns the paths of an image and of its thumbnail. Not `path`, because the lock is held."""
        image = (self._folder or Path()) / (hash if _HASH.fullmatch(hash) else _UNKNOWN)
        return image, image.with_suffix(_THUMBNAIL)

    def remove_temporary(self) -> None:
        """Removes the files that a killed process was keeping, unless one is being kept. Ignores errors."""
        with self._lock:
            left_over = self._folder.glob(f".*{TEMPORARY}") if self._folder and not self._writing else ()
            for left in left_over:
                with contextlib.suppress(OSError):
                    left.unlink()

    def _failure(self, name: str, error: OSError) -> StoreError:
        hint = (
            strings.DISK_FULL
            if is_full(error)
            else strings.images_folder(shown(str(self.folder)), reason_of(error))
        )
        return StoreError(strings.image_not_kept(name), hint)


def _read(path: Path, most_bytes: int) -> bytes | None:
    """Returns the bytes of a file; None if it is missing, unreadable or longer."""
    try:
        return read_regular(path, most_bytes)
    except (OSError, FileTooLargeError):
        return None


def _copy(source: Path | bytes, name: str, target: Path) -> None:
    """Writes the bytes to `target`. Raises `OSError`, and `RequestError` if it is too large or not a file."""
    with contextlib.ExitStack() as stack:
        if isinstance(source, bytes):
            size_bytes = len(source)
        else:
            stream, size_bytes = stack.enter_context(opened_file(source, name))
        if size_bytes > limits.MOST_IMAGE_BYTES:
            told = document_strings.file_size(name, size_bytes, limits.MOST_IMAGE_BYTES)
            raise RequestError(told, document_strings.SCALE_IMAGE)
        data = source if isinstance(source, bytes) else stream.read(limits.MOST_IMAGE_BYTES)
    with open(target, "xb", opener=opener) as file:
        file.write(data)
        file.flush()
        sync(file.fileno())
