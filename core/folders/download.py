"""Resumable downloads from the hub into the data directory, and the hub's API.

Files are downloaded to a staging folder next to the models, as `name.part` until size and hash are verified,
with a record of the commit and its files. Partial downloads therefore survive a pause, a lost connection and
the end of the process, and a folder among the models is always complete. Small files come first, so that an
unsupported model is refused before its weights are downloaded.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import shutil
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from core.errors import DownloadError, ModelError
from core.events import DownloadProgress, HubModel
from core.folders.config import is_supported
from core.folders.eyes import FAMILIES
from core.folders.folder import TEMPLATES_FOLDER, check_whole, gigabytes
from core.folders.json_files import read_object
from core.folders.places import download_folder, folder_name, head_kind, hub_name, is_head_file, is_hub_name
from core.folders.quiet_hub import hush_hub
from core.system.files import sync, write_atomic
from core.system.paths import models_dir, shown
from core.system.prepared import prepared
from core.system.private import FILE_MODE, make_folder, opener

_STAGING = ".downloads"
NOTE = "draftlight-download.json"
_ATTEMPTS = 5
_LONGEST_WAIT_S = 8.0
# Free space to leave on the disk.
_SPARE_BYTES = 200_000_000
_PIECE_BYTES = 1 << 20
# Interval of reports, and averaging window of the speed.
_EVERY_S = 0.25
_WINDOW_S = 4.0
OnProgress = Callable[[int, int], None]


class Download:
    """A download; call `run()`. `heard(done_bytes, total_bytes)` is called for each piece.

    A lost connection is retried up to `attempts` times in a row, with doubled waits. Single thread; the
    process may be killed at any time.
    """

    def __init__(
        self,
        model: str,
        on_progress: OnProgress = lambda done, total: None,
        *,
        attempts: int = _ATTEMPTS,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._on_progress = on_progress
        self._attempts = attempts
        self._wait = wait
        self._folder = staging_folder(model)
        # A hidden name, which is not a model's.
        self._replaced = self._folder.with_name(f".{self._folder.name}.old")

    def run(self) -> Path:
        """Downloads the model and returns its folder.

        Raises `ModelError` if the model does not exist or MLX cannot load it, `DownloadError` if the download
        cannot be completed now; partial files are kept.
        """
        try:
            with _locked(self._model):
                return self._run()
        except OSError as error:
            raise DownloadError(
                f"Cannot write “{self._model}” to {self._folder}: {in_words(error)}.",
                "Free some space or make the folder writable, then resume.",
            ) from error

    def _run(self) -> Path:
        if found := self._finished():
            return found
        shutil.rmtree(self._replaced, ignore_errors=True)
        if noted := _noted(self._folder):
            with suppress(_GoneError):
                return self._complete(noted)
        return self._complete(self._begin(noted))

    def _complete(self, remote: RemoteModel) -> Path:
        self._check_space(remote)
        weights = [file for file in remote.files if file.name.endswith(".safetensors")]
        for file in [file for file in remote.files if file not in weights]:
            self._fetch(remote, file)
        self._check_type()
        for file in weights:
            self._fetch(remote, file)
        check_whole(self._folder)
        return self._finish()

    def _finished(self) -> Path | None:
        """The folder of an earlier complete download; None if there is none or it is damaged."""
        folder = download_folder(self._model)
        remote = _noted(folder)
        if remote is None or _arrived(folder, remote) < remote.total_bytes:
            return None
        try:
            check_whole(folder)
        except ModelError:
            return None
        self._on_progress(remote.total_bytes, remote.total_bytes)
        return folder

    def _begin(self, gone: RemoteModel | None) -> RemoteModel:
        """Looks the model up; of the files of a commit that is `gone`, those that are still the same stay."""
        remote = look_up(self._model)
        make_folder(self._folder)
        for file in set(gone.files if gone else ()) - set(remote.files):
            for name in (file.name, f"{file.name}.part"):
                (self._folder / name).unlink(missing_ok=True)
        write_atomic(self._folder / NOTE, msgspec.json.format(msgspec.json.encode(remote)))
        return remote

    def _check_space(self, remote: RemoteModel) -> None:
        missing = remote.total_bytes - _arrived(self._folder, remote)
        free = shutil.disk_usage(self._folder).free
        if missing + _SPARE_BYTES > free:
            raise DownloadError(
                f"“{self._model}” needs {gigabytes(missing)} GB more, and {gigabytes(free)} GB are free on"
                f" the disk of {self._folder.parent.parent}.",
                "Free some space, then resume.",
            )

    def _check_type(self) -> None:
        """Checks the model type before the large files; `check` follows at the end."""
        try:
            config = read_object(self._folder / "config.json")
            kind = "" if head_kind(config) else str(config["model_type"])
        except (ValueError, KeyError) as error:
            raise ModelError(
                f"The config.json of “{self._model}” has no model_type.", "Choose another model."
            ) from error
        if kind and not is_supported(kind):
            raise ModelError(
                f"“{self._model}” is of the type “{kind}”, which MLX cannot load.", "Choose another model."
            )

    def _fetch(self, remote: RemoteModel, file: RemoteFile) -> None:
        """Downloads one file and verifies it."""
        target, part = self._folder / file.name, self._folder / f"{file.name}.part"
        make_folder(target.parent)
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
                    "Resume to download it again. If this happens again, the hub's copy is damaged.",
                )
        os.replace(part, target)
        self._tell(remote)

    def _stream_all(self, remote: RemoteModel, file: RemoteFile, part: Path) -> str:
        """Downloads the missing part of `part`. Returns the hash of the file, empty if none is published."""
        failures, wait_s = 0, 1.0
        with open(part, "ab", buffering=0, opener=opener) as out:
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
                            self._on_progress(others + min(have, file.size_bytes), total)
                    if have < file.size_bytes:
                        raise CutOff("the connection ended early")
                except CutOff as error:
                    failures += 1
                    if failures >= self._attempts:
                        raise DownloadError(
                            f"The download of “{self._model}” was interrupted ({error}).",
                            "Partial files are kept; resume when the connection is back.",
                        ) from error
                    self._wait(wait_s)
                    wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            sync(out.fileno())
        return str(digest.hexdigest()) if file.sha256 or file.git_oid else ""

    def _tell(self, remote: RemoteModel) -> None:
        self._on_progress(_arrived(self._folder, remote), remote.total_bytes)

    def _finish(self) -> Path:
        target = download_folder(self._model)
        if target.exists():  # an older or damaged file
            os.rename(target, self._replaced)
            os.rename(self._folder, target)
            shutil.rmtree(self._replaced, ignore_errors=True)
        else:
            os.rename(self._folder, target)
        return target


def staging_folder(model: str) -> Path:
    """Folder of the partial files of `model`."""
    return models_dir() / _STAGING / folder_name(model)


def unfinished() -> Iterator[DownloadProgress]:
    """Unfinished downloads by name, as paused ones."""
    place = models_dir() / _STAGING
    for folder in sorted(place.iterdir()) if place.is_dir() else ():
        if (name := hub_name(folder.name)) and (remote := _noted(folder)):
            yield DownloadProgress(name, "paused", _arrived(folder, remote), remote.total_bytes)


def partial_progress(model: str) -> DownloadProgress:
    """Progress of the partial download of `model`; zeros if there is none."""
    return next((each for each in unfinished() if each.model == model), DownloadProgress(model, "paused"))


def discard(model: str) -> None:
    """Removes the partial files of `model`. Raises `DownloadError` while another process downloads it, for an
    invalid hub name, and if files remain.
    """
    if not is_hub_name(model):
        raise DownloadError(f"“{shown(model)}” is not a hub name.", "Use the form owner/name.")
    with _locked(model):
        folder = staging_folder(model)
        try:
            if folder.exists():
                shutil.rmtree(folder)
        except OSError as error:
            problem = f"The partial files of “{model}” cannot be removed: {in_words(error)}."
            raise DownloadError(problem, f"Remove {folder} yourself.") from error


@contextmanager
def _locked(model: str) -> Iterator[None]:
    place = models_dir() / _STAGING
    lock = FileLock(place / f".{folder_name(model)}.lock", timeout=0, mode=FILE_MODE)
    try:
        make_folder(place)
        lock.acquire()
    except Timeout:
        raise DownloadError(
            f"“{model}” is being downloaded by another Draftlight already.", "Wait for it, or stop it there."
        ) from None
    except OSError as error:
        raise DownloadError(
            f"Cannot write to {place}: {in_words(error)}.", "Free some space or make the folder writable."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _noted(folder: Path) -> RemoteModel | None:
    """The recorded files of the download; None if it has not begun or the record is damaged."""
    try:
        return msgspec.json.decode((folder / NOTE).read_bytes(), type=prepared(RemoteModel))
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
    """Hash of the existing content of `part`: SHA-256, or Git's blob hash."""
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


# ---- the hub's API: models, and their files as streams
#
# huggingface_hub provides the address (HF_ENDPOINT), the login and the errors. Its download functions are not
# used: since 2.0 they write to a file with a random name and remove it on interruption
# (`_download_to_tmp_and_move`), so downloads do not resume. Delete `file_stream` when they do.


# Files that MLX and the tokenizers read; all but those of MTP heads and further chat templates are
# in the repository's root.
_WANTED_ENDINGS = (".json", ".txt", ".jinja", ".tiktoken")
_WANTED_NAMES = ("tokenizer.model",)
_HEAD_FILE = re.compile(r"(mtp/)?\w[\w.-]*", re.IGNORECASE)
_TIMEOUT_S = 20.0
_MOST_FOUND = 20


class CutOff(Exception):
    """The connection failed or ended early; trying again may help."""


class _GoneError(DownloadError):
    """The hub has no such file at this commit."""


class RemoteFile(Struct, frozen=True):
    """A file on the hub. `sha256` is known for large files, `git_oid` (Git's blob hash, SHA-1) for small
    ones.
    """

    name: str
    size_bytes: int
    sha256: str = ""
    git_oid: str = ""


_FOR_IMAGES = "image-text-to-text"


class _Found(Struct):
    """The used fields of the hub's file list. `tags` have the model type, `pipeline_tag` its purpose."""

    id: str
    downloads: int = 0
    gated: bool | str = False
    pipeline_tag: str | None = None
    tags: tuple[Any, ...] = ()

    @property
    def sees(self) -> bool:
        """Whether it is for images and text, and Draftlight supports images for its type."""
        return self.pipeline_tag == _FOR_IMAGES and not FAMILIES.keys().isdisjoint(map(str, self.tags))


class RemoteModel(Struct, frozen=True):
    """The required files of `model` at `commit`."""

    model: str
    commit: str
    files: tuple[RemoteFile, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def endpoint() -> str:
    """The hub's address."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def look_up(model: str) -> RemoteModel:
    """The files of `model`. Raises `ModelError` if it does not exist or MLX cannot load it."""
    if not is_hub_name(model):
        raise ModelError(
            f"“{model}” is not a hub name.", "Write owner/name, like mlx-community/Qwen3-4B-4bit."
        )
    hush_hub()
    from huggingface_hub import HfApi

    with _converted_errors(model):
        info = HfApi(endpoint=endpoint()).model_info(model, files_metadata=True, timeout=_TIMEOUT_S)
    names = [sibling.rfilename for sibling in info.siblings or ()]
    files = tuple(
        RemoteFile(
            sibling.rfilename,
            int((sibling.lfs.size if sibling.lfs else sibling.size) or 0),
            sibling.lfs.sha256 if sibling.lfs else "",
            "" if sibling.lfs else str(sibling.blob_id or ""),
        )
        for sibling in info.siblings or ()
        if _is_wanted(sibling.rfilename)
    )
    if not any(_is_weights(file.name) for file in files):
        others = sorted(
            {name.rpartition(".")[2] for name in names if name.endswith((".gguf", ".bin", ".pt", ".npz"))}
        )
        held = f"; its weights are .{' and .'.join(others)} files" if others else ""
        raise ModelError(
            f"“{model}” holds no model*.safetensors{held}.",
            "Choose a version for MLX; mlx-community has many.",
        )
    if "config.json" not in names:
        raise ModelError(f"“{model}” holds no config.json.", "Choose a version for MLX.")
    return RemoteModel(model, str(info.sha or "main"), files)


def search(text: str) -> tuple[HubModel, ...]:
    """MLX models whose names contain `text`, most downloaded first. Raises `ModelError`.

    Uses the HTTP API, because the client's own listing has no timeout.
    """
    hush_hub()
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    wanted = {"search": text, "filter": "mlx", "sort": "downloads", "limit": str(_MOST_FOUND)}
    with _converted_errors(text, f"The search for “{shown(text)}” failed"):
        response = get_session().get(
            f"{endpoint()}/api/models", params=wanted, headers=build_hf_headers(), timeout=_TIMEOUT_S
        )
        hf_raise_for_status(response)
        found = msgspec.convert(response.json(), prepared(list[_Found]))
    return tuple(
        HubModel(each.id, each.downloads, bool(each.gated), each.sees)
        for each in found
        if is_hub_name(each.id)
    )


@contextmanager
def file_stream(remote: RemoteModel, file: RemoteFile, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The bytes of `file` from `start` on, with their actual offset: 0 if the hub sends the whole file.

    Raises `DownloadError` if the hub refuses, `CutOff` if the connection fails, also while reading.
    """
    hush_hub()
    from huggingface_hub import hf_hub_url
    from huggingface_hub.errors import OfflineModeIsEnabled
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    url = hf_hub_url(remote.model, file.name, revision=remote.commit, endpoint=endpoint())
    # A compressed body cannot be resumed in the middle.
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with ExitStack() as stack:
        with _converted_errors(remote.model):
            try:
                response = stack.enter_context(
                    get_session().stream(
                        "GET", url, headers=headers, timeout=_TIMEOUT_S, follow_redirects=True
                    )
                )
            except Exception as error:  # the transport's own kinds, which change with the client's version
                if isinstance(error, OfflineModeIsEnabled) or (reason := in_words(error)) == _CERTIFICATE:
                    raise
                raise CutOff(reason) from error
            if response.status_code >= 500:
                raise CutOff(f"the hub answered with status {response.status_code}")
            hf_raise_for_status(response)
        yield _first_byte(response) if start else 0, _pieces(response)


def _pieces(response: Any) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except Exception as error:  # as above
        raise CutOff(in_words(error)) from error


def _first_byte(response: Any) -> int:
    """Offset of a partial response, from its Content-Range; 0 for a whole one."""
    if response.status_code != 206:
        return 0
    start = str(response.headers.get("Content-Range", "")).removeprefix("bytes ").partition("-")[0]
    return int(start) if start.isdigit() else 0


def _is_wanted(name: str) -> bool:
    if _HEAD_FILE.fullmatch(name) and is_head_file(name):
        return True
    folder, _, inside = name.partition("/")
    if folder == TEMPLATES_FOLDER and inside.endswith(".jinja"):
        name = inside
    if "/" in name or "\\" in name or name.startswith("."):
        return False
    return _is_weights(name) or name.endswith(_WANTED_ENDINGS) or name in _WANTED_NAMES


def _is_weights(name: str) -> bool:
    return name.startswith("model") and name.endswith(".safetensors") and "/" not in name


@contextmanager
def _converted_errors(what: str, failed: str = "") -> Iterator[None]:
    """Converts the client's errors to Draftlight's, with advice. `failed`: message if it isn't a download."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    failed = failed or f"“{what}” could not be downloaded"

    try:
        yield
    except GatedRepoError as error:
        raise DownloadError(
            f"“{what}” is only for people who agreed to its terms.",
            f"Agree at {endpoint()}/{what} and log in with: hf auth login",
        ) from error
    except RepositoryNotFoundError as error:
        raise DownloadError(
            f"There is no model “{what}” on the hub, or it is private.",
            "Check the name; for a private model log in with: hf auth login",
        ) from error
    except HFValidationError as error:
        raise ModelError(f"“{what}” is not a hub name.", "Write owner/name.") from error
    except OfflineModeIsEnabled as error:
        raise DownloadError(f"{failed}: HF_HUB_OFFLINE is set.", "Unset it to use the hub.") from error
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        if status == 401:
            hint = "Log in again with: hf auth login. If HF_TOKEN is set, unset it."
            raise DownloadError(f"{failed}: the hub does not accept your login.", hint) from error
        kind = _GoneError if status in (404, 410) else DownloadError
        raise kind(f"{failed}: the hub answered with status {status}.", "Try again later.") from error
    except (ModelError, CutOff):
        raise
    except Exception as error:  # the transport's own kinds, which change with the client's version
        raise DownloadError(
            f"{failed}: the hub at {endpoint()} cannot be reached ({in_words(error)}).",
            "Check the connection and try again.",
        ) from error


_OFFLINE = "there is no network connection"
_LOST = "the connection was lost"
_CERTIFICATE = "its certificate is not valid"
# The first that matches, of the exceptions that led to this one.
_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (socket.gaierror, f"{_OFFLINE}, or the hub's name is unknown"),
    (ConnectionRefusedError, "the connection was refused"),
    (ssl.SSLCertVerificationError, _CERTIFICATE),
    (ssl.SSLError, "no secure connection could be made"),
    (TimeoutError, "there was no answer in time"),
    (ConnectionError, _LOST),
)
_NUMBERS = {
    errno.ENETUNREACH: _OFFLINE,
    errno.ENETDOWN: _OFFLINE,
    errno.EHOSTUNREACH: "the hub cannot be reached from this network",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "access is not allowed",
    errno.EPERM: "access is not allowed",
    errno.EIO: "the disk reported an error",
}


def in_words(error: BaseException) -> str:
    """The reason of a failed transfer as a phrase, without names of exceptions or numbers of errors.

    Looks at the exceptions that led to `error`, because the transport wraps the system's.
    """
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, CutOff):
            return str(cause)
        for kind, words in _KINDS:
            if isinstance(cause, kind):
                return words
        if isinstance(cause, OSError) and cause.errno is not None:
            return _NUMBERS.get(cause.errno, "the system reported an error")
        if "Timeout" in type(cause).__name__:
            return "there was no answer in time"
        cause = cause.__cause__ or cause.__context__
    return _LOST
