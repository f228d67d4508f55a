"""Download: one model from the hub into the data directory, which may stop and go on at any time.

While it is under way its files lie in a staging folder beside the models, each as `name.part`
until its size and hash are right, with a note of which files at which commit belong to it. So what
arrived outlives a pause, a cut connection, and the end of the process; and a folder among the
models is always whole. Small files come first: a model of a type that cannot be loaded is refused
before its weights are fetched.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from core.errors import DownloadError, ModelError
from core.events import DownloadProgress
from core.models.folder import check, gigabytes
from core.models.library.hub import CutOff, RemoteFile, RemoteModel, file_stream, look_up
from core.models.library.model_types import is_supported
from core.models.library.naming import folder_name, hub_name, is_hub_name
from core.models.library.places import download_folder
from core.system.paths import models_dir, shown

_STAGING = ".downloads"
_NOTE = "draftlight-download.json"
_ATTEMPTS = 5
_LONGEST_WAIT_S = 8.0
# Left free for everything else on the disk.
_SPARE_BYTES = 200_000_000
_PIECE_BYTES = 1 << 20
# Between two reports, and the interval that the speed is a mean of.
_EVERY_S = 0.25
_WINDOW_S = 4.0
Heard = Callable[[int, int], None]


class Unfinished(Struct, frozen=True):
    """A download that has begun: what arrived of it, and how much it is altogether."""

    model: str
    done_bytes: int
    total_bytes: int


class Download:
    """`run()` until it returns or raises. `heard(done_bytes, total_bytes)` is called for each piece.

    A cut-off connection is taken up again up to `attempts` times in a row, after waits that double.
    One thread; another process may end this one at any moment.
    """

    def __init__(
        self,
        model: str,
        heard: Heard = lambda done, total: None,
        *,
        attempts: int = _ATTEMPTS,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._heard = heard
        self._attempts = attempts
        self._wait = wait
        self._folder = staging_folder(model)

    def run(self) -> Path:
        """The finished model's folder.

        Raises `ModelError` if there is no such model or MLX cannot load it, `DownloadError` if it
        cannot be finished now; what arrived is kept then.
        """
        try:
            with _locked(self._model):
                return self._run()
        except OSError as error:
            raise DownloadError(
                f"“{self._model}” could not be written to {self._folder}: {error}.",
                "Free some space or make the folder writable, then go on.",
            ) from error

    def _run(self) -> Path:
        if found := self._finished():
            return found
        remote = _noted(self._folder) or self._begin()
        self._check_space(remote)
        weights = [file for file in remote.files if file.name.endswith(".safetensors")]
        for file in [file for file in remote.files if file not in weights]:
            self._fetch(remote, file)
        self._check_type()
        for file in weights:
            self._fetch(remote, file)
        check(self._folder)
        return self._finish()

    def _finished(self) -> Path | None:
        """The folder of an earlier download that is whole. A damaged one is fetched again."""
        folder = download_folder(self._model)
        remote = _noted(folder)
        if remote is None or _arrived(folder, remote) < remote.total_bytes:
            return None
        try:
            check(folder)
        except ModelError:
            return None
        self._heard(remote.total_bytes, remote.total_bytes)
        return folder

    def _begin(self) -> RemoteModel:
        remote = look_up(self._model)
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / f"{_NOTE}.new"
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(remote)))
        os.replace(fresh, self._folder / _NOTE)
        return remote

    def _check_space(self, remote: RemoteModel) -> None:
        missing = remote.total_bytes - _arrived(self._folder, remote)
        free = shutil.disk_usage(self._folder).free
        if missing + _SPARE_BYTES > free:
            raise DownloadError(
                f"“{self._model}” needs {gigabytes(missing)} GB more, and {gigabytes(free)} GB are free on"
                f" the disk of {self._folder.parent.parent}.",
                "Free some space, then go on.",
            )

    def _check_type(self) -> None:
        """Before the large files; `check` says the rest at the end."""
        try:
            config = json.loads((self._folder / "config.json").read_text(encoding="utf-8"))
            kind = str(config["model_type"])
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"The config.json of “{self._model}” names no model_type.", "Choose another."
            ) from error
        if not is_supported(kind):
            raise ModelError(
                f"“{self._model}” is of the type “{kind}”, which MLX cannot load.", "Choose another model."
            )

    def _fetch(self, remote: RemoteModel, file: RemoteFile) -> None:
        """One file, whole and right, or an exception."""
        target, part = self._folder / file.name, self._folder / f"{file.name}.part"
        if target.is_file():
            self._tell(remote)
            return
        for last in (False, True):
            digest = self._stream_all(remote, file, part)
            if digest in ("", file.sha256 or file.git_oid):
                break
            part.unlink()
            if last:
                raise DownloadError(
                    f"{file.name} of “{self._model}” does not match its checksum and was removed.",
                    "Go on to fetch it once more. If it happens again, the hub's copy is damaged.",
                )
        os.replace(part, target)
        self._tell(remote)

    def _stream_all(self, remote: RemoteModel, file: RemoteFile, part: Path) -> str:
        """Fetch what is missing of `part`; the hash of all of it, empty if none is known to compare."""
        failures, wait_s = 0, 1.0
        with part.open("ab", buffering=0) as out:
            have = out.tell()
            others, total = _arrived(self._folder, remote) - have, remote.total_bytes
            if have > file.size_bytes:
                have = out.truncate(0)
            digest = _digest_of(file, part)
            while have < file.size_bytes:
                try:
                    with file_stream(remote, file, have) as (start, pieces):
                        if start != have:
                            have = out.truncate(start)
                            digest = _digest_of(file, part)
                        for piece in pieces:
                            have += _write_all(out, piece)
                            digest.update(piece)
                            failures, wait_s = 0, 1.0
                            self._heard(others + min(have, file.size_bytes), total)
                    if have < file.size_bytes:
                        raise CutOff("the connection ended early")
                except CutOff as error:
                    failures += 1
                    if failures >= self._attempts:
                        raise DownloadError(
                            f"The download of “{self._model}” was cut off ({error}).",
                            "What arrived is kept; go on when the connection is back.",
                        ) from error
                    self._wait(wait_s)
                    wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            os.fsync(out.fileno())
        return str(digest.hexdigest()) if file.sha256 or file.git_oid else ""

    def _tell(self, remote: RemoteModel) -> None:
        self._heard(_arrived(self._folder, remote), remote.total_bytes)

    def _finish(self) -> Path:
        target = download_folder(self._model)
        if target.exists():  # an older or a damaged one
            old = self._folder.with_name(f"{self._folder.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            os.rename(target, old)
            os.rename(self._folder, target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(self._folder, target)
        return target


def staging_folder(model: str) -> Path:
    """Where the files of `model` lie while they arrive."""
    return models_dir() / _STAGING / folder_name(model)


def unfinished() -> Iterator[Unfinished]:
    """Downloads that have begun, by name."""
    place = models_dir() / _STAGING
    for folder in sorted(place.iterdir()) if place.is_dir() else ():
        if (name := hub_name(folder.name)) and (remote := _noted(folder)):
            yield Unfinished(name, _arrived(folder, remote), remote.total_bytes)


def standing(model: str) -> Unfinished:
    """How much of `model` has arrived; zeros if its download has not begun."""
    return next((each for each in unfinished() if each.model == model), Unfinished(model, 0, 0))


def discard(model: str) -> None:
    """Remove what arrived of `model`. Raises `DownloadError` while another process fetches it, and for
    what is no model of a hub.
    """
    if not is_hub_name(model):
        raise DownloadError(f"“{shown(model)}” is no model of a hub.", "These are called owner/name.")
    with _locked(model):
        shutil.rmtree(staging_folder(model), ignore_errors=True)


@contextmanager
def _locked(model: str) -> Iterator[None]:
    place = models_dir() / _STAGING
    place.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place / f".{folder_name(model)}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise DownloadError(
            f"“{model}” is being downloaded by another Draftlight already.", "Wait for it, or stop it there."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _noted(folder: Path) -> RemoteModel | None:
    """What belongs to the download; None if it has not begun, or its note is damaged."""
    try:
        return msgspec.json.decode((folder / _NOTE).read_bytes(), type=RemoteModel)
    except (OSError, msgspec.DecodeError):
        return None


def _arrived(folder: Path, remote: RemoteModel) -> int:
    done = 0
    for file in remote.files:
        for name in (file.name, f"{file.name}.part"):
            try:
                done += min((folder / name).stat().st_size, file.size_bytes)
            except OSError:
                continue
            break
    return done


def _digest_of(file: RemoteFile, part: Path) -> Any:
    """A hash that has taken in what is there of `part`: SHA-256, or Git's of a blob."""
    if file.sha256 or not file.git_oid:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
    with part.open("rb") as have:
        while piece := have.read(_PIECE_BYTES):
            digest.update(piece)
    return digest


def _write_all(out: io.FileIO, piece: bytes) -> int:
    view = memoryview(piece)
    while view:
        view = view[out.write(view) or 0 :]
    return len(piece)


class Meter:
    """Speed and remaining time of a running download, reported at most four times a second.

    The speed is the mean over the last `_WINDOW_S` seconds of this run.
    """

    def __init__(self, model: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.total_bytes = 0
        self._model = model
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._reported_s: float | None = None

    def take(self, done_bytes: int, total_bytes: int) -> DownloadProgress | None:
        """The next report; None if the last one is less than `_EVERY_S` seconds old."""
        now = self._clock()
        self.total_bytes = total_bytes
        if not self._seen:
            self._seen.append((now, done_bytes))
        if self._reported_s is not None and now - self._reported_s < _EVERY_S:
            return None
        self._reported_s = now
        self._seen.append((now, done_bytes))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        since_s, before = self._seen[0]
        speed = max(0, done_bytes - before) / (now - since_s) if now > since_s else 0.0
        left_s = (total_bytes - done_bytes) / speed if speed > 0 else None
        return DownloadProgress(self._model, "running", done_bytes, total_bytes, speed, left_s)
