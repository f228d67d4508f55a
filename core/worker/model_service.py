"""ModelService: commands about models on the disk, on a separate thread, in order.

The main thread may answer for minutes; listing, importing and downloading must not wait for it and do not use
MLX.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from core.errors import DraftlightError, ProtocolError
from core.events import (
    CancelDownload,
    Command,
    DownloadModel,
    DownloadProgress,
    DownloadState,
    Event,
    ImportModel,
    ListModels,
    LookUpModels,
    ModelImported,
    ModelList,
    ModelRemoved,
    ModelsFound,
    PauseDownload,
    RemoveModel,
    decode_event,
    encode,
    failure,
)
from core.folders import download as hub
from core.folders.catalogue import Catalogue, suggested
from core.folders.config import Machine
from core.folders.download import Download, Meter, discard, in_words, partial_progress, unfinished
from core.folders.places import find
from core.system.children import CHILD_FOLDER, child_command, child_environment
from core.system.paths import data_dir, models_dir

_COMMANDS = (ListModels, LookUpModels, DownloadModel, PauseDownload, CancelDownload, ImportModel, RemoveModel)


class ModelService:
    """`say` accepts events from any thread. `in_use`: folders that must not be removed."""

    def __init__(self, say: Callable[[Event], None], machine: Machine, in_use: FoldersInUse) -> None:
        self._say = say
        self._in_use = in_use
        self._catalogue = Catalogue(machine)
        self._downloads = Downloads(say, self._list_again)
        self._queue: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self, command: Command) -> bool:
        """Queues `command` if it is about models on the disk; else returns False."""
        if not isinstance(command, _COMMANDS):
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="models", daemon=True)
            self._thread.start()
        self._queue.put(command)
        return True

    def close(self) -> None:
        """Pauses the downloads and waits for the end of the thread."""
        self._downloads.close()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _list_again(self) -> None:
        self._queue.put(ListModels(""))

    def _run(self) -> None:
        while (command := self._queue.get()) is not None:
            request = getattr(command, "request", "")
            try:
                self._carry_out(command)
            except Exception as error:  # boundary: every error is reported to the window
                if not isinstance(error, DraftlightError):
                    traceback.print_exc()
                name = str(type(command).__struct_config__.tag)
                self._say(failure(error, command=name, request=request))

    def _carry_out(self, command: Command) -> None:
        match command:
            case ListModels(request):
                self._say(self._listing(request))
            case LookUpModels():
                # A hub may be slow; pausing a download must not wait for it.
                threading.Thread(target=self._look_up, args=(command,), name="look-up", daemon=True).start()
            case DownloadModel(model):
                self._downloads.start(model)
            case PauseDownload(model):
                self._downloads.pause(model)
            case CancelDownload(model):
                self._cancel(model)
            case ImportModel(request, path):
                self._say(ModelImported(request, self._catalogue.take(path)))
                self._say(self._listing(""))
            case RemoveModel(request, reference):
                with self._in_use.removing() as in_use:
                    entry, _ = self._catalogue.remove(reference, in_use)
                self._say(ModelRemoved(request, entry.reference, entry.name))
                self._say(self._listing(""))
            case _:
                pass

    def _look_up(self, command: LookUpModels) -> None:
        try:
            found = hub.search(command.text)
        except DraftlightError as error:
            self._say(failure(error, command="look_up_models", request=command.request))
        else:
            self._say(ModelsFound(command.request, command.text, found))

    def _cancel(self, model: str) -> None:
        try:
            self._downloads.cancel(model)
        except DraftlightError as error:
            self._say(DownloadProgress(model, "failed", problem=error.message, hint=error.hint))

    def _listing(self, request: str) -> ModelList:
        # With MLX, which the processes of downloads do not load.
        from core.machine import exactness, profile, readings

        exact, tried = exactness.summaries(), readings.summaries()
        folder = models_dir()
        place = next((each for each in (folder, *folder.parents) if each.exists()), data_dir())
        return ModelList(
            request,
            str(folder),
            tuple(
                replace(e, exactness=exact.get((e.path, e.name), ""), readings=tried.get(e.path, ""))
                for e in profile.with_gains(self._catalogue.entries())
            ),
            self._downloads.states(),
            self._catalogue.machine.limit_bytes,
            shutil.disk_usage(place).free,
            suggested(self._catalogue.machine),
        )


# ---- folders in use


class FoldersInUse:
    """Folders of loaded models and of models that are about to be loaded. Any thread.

    A model counts from the moment its command was read until it was replaced or failed to load. `removing()`
    and `loading()` exclude each other.
    """

    def __init__(self) -> None:
        self._disk = threading.Lock()
        self._lock = threading.Lock()
        self._loaded: tuple[str, ...] = ()
        self._coming: Counter[str] = Counter()

    def coming(self, *references: str) -> None:
        """Registers models that will be loaded; call `settled` or `dropped` once with the same references."""
        with self._lock:
            self._coming.update(references)

    def dropped(self, *references: str) -> None:
        """They will not be loaded."""
        with self._lock:
            self._coming.subtract(references)
            self._coming += Counter()  # removes zero counts

    def settled(self, loaded: Sequence[str], *references: str) -> None:
        """Loading ended; `loaded` are the folders now in memory."""
        self.dropped(*references)
        with self._lock:
            self._loaded = tuple(loaded)

    def loading(self) -> None:
        """Waits for the end of a running removal."""
        with self._disk:
            pass

    @contextlib.contextmanager
    def removing(self) -> Iterator[tuple[str, ...]]:
        """Context with the folders that must not be removed; no loading starts within it."""
        with self._disk:
            with self._lock:
                loaded, coming = self._loaded, tuple(self._coming)
            yield (*loaded, *(folder for each in coming if (folder := _folder(each))))


def _folder(reference: str) -> str:
    try:
        found = find(reference)
    except DraftlightError:
        return ""
    return str(found.absolute()) if found else ""


# ---- downloads: child processes, of which each downloads one model
#
# A download is paused by ending its process. Each reports `running` first and exactly one of done, paused,
# failed and cancelled last, from one thread at a time.


_GRACE_S = 0.5


class _Child:
    """One process and the thread that reads its output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.thread: threading.Thread | None = None
        self.asked: DownloadState | None = None
        self.last: DownloadProgress | None = None


class Downloads:
    """Runs downloads. `say` receives progress; `changed` is called when a model was downloaded or a download
    removed.
    """

    def __init__(
        self,
        say: Callable[[DownloadProgress], None],
        changed: Callable[[], None],
        command: Sequence[str] | None = None,
    ) -> None:
        self._say = say
        self._changed = changed
        self._command = list(command or child_command("--download"))
        self._lock = threading.Lock()
        self._children: dict[str, _Child] = {}
        self._failed: dict[str, DownloadProgress] = {}
        self._closing = False

    def start(self, model: str) -> None:
        """Starts or resumes a download; no effect if it is running."""
        with self._lock:
            if model in self._children or self._closing:
                return
            self._failed.pop(model, None)
            self._say(_progress(model, "running"))
            try:
                process = subprocess.Popen(
                    [*self._command, model],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=child_environment(),
                    cwd=CHILD_FOLDER,
                )
            except OSError as error:
                failed = _progress(model, "failed", f"Cannot start the download: {in_words(error)}.")
                self._failed[model] = failed
                self._say(failed)
                self._changed()
                return
            child = self._children[model] = _Child(process)
            child.thread = threading.Thread(
                target=self._listen, args=(model, child), name=f"download of {model}", daemon=True
            )
            child.thread.start()

    def pause(self, model: str) -> None:
        """Ends the process and keeps the partial files."""
        self._end(model, "paused")

    def cancel(self, model: str) -> None:
        """Ends the process, if any, and removes the partial files. Raises `DownloadError`."""
        if not self._end(model, "cancelled"):
            discard(model)
            self._failed.pop(model, None)
            self._say(DownloadProgress(model, "cancelled"))
            self._changed()

    def states(self) -> tuple[DownloadProgress, ...]:
        """All unfinished downloads by name."""
        with self._lock:
            found = dict(self._failed)
            for each in unfinished():
                found.setdefault(each.model, each)
            for model, child in self._children.items():
                found[model] = child.last or DownloadProgress(model, "running")
        return tuple(found[model] for model in sorted(found))

    def close(self) -> None:
        """Pauses all downloads and waits for the end of their processes."""
        with self._lock:
            self._closing = True
            running = list(self._children)
        for model in running:
            self._end(model, "paused")

    def _end(self, model: str, how: DownloadState) -> bool:
        """Ends the process and waits until its end was reported. Returns False if there was none."""
        with self._lock:
            child = self._children.get(model)
            if child is None:
                return False
            child.asked = how
            child.process.terminate()
        try:
            child.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.process.kill()
        if child.thread:
            child.thread.join()
        return True

    # ---- the listening thread of one child

    def _listen(self, model: str, child: _Child) -> None:
        process = child.process
        assert process.stdout
        assert process.stdin
        for line in process.stdout:
            try:
                event = decode_event(line)
            except ProtocolError:
                continue
            if isinstance(event, DownloadProgress):
                child.last = event
                if event.state == "running":
                    self._say(event)
        process.wait()
        process.stdout.close()
        process.stdin.close()
        try:
            last = self._end_of(model, child)
        except Exception as error:  # boundary: no download stays listed as running
            traceback.print_exc()
            last = DownloadProgress(model, "failed", problem=f"The download ended: {in_words(error)}.")
        with self._lock:
            del self._children[model]
            if last.state == "failed":
                self._failed[model] = last
        self._say(last)
        self._changed()

    def _end_of(self, model: str, child: _Child) -> DownloadProgress:
        """The last report. A download that completed before it was paused is done."""
        if child.last and child.last.state == "done":
            return child.last
        if child.asked == "cancelled":
            partial = _progress(model, "failed")  # of the files that may remain
            try:
                discard(model)
            except DraftlightError as error:
                return replace(partial, problem=error.message, hint=error.hint)
            return DownloadProgress(model, "cancelled")
        if child.asked == "paused":
            return _progress(model, "paused")
        if child.last and child.last.state == "failed":
            return child.last
        print(f"The download of {model} ended with status {child.process.returncode}.", file=sys.stderr)
        problem = "The download ended unexpectedly."
        return _progress(model, "failed", problem, "Partial files are kept; resume to try again.")


def _progress(model: str, state: DownloadState, problem: str = "", hint: str = "") -> DownloadProgress:
    return replace(partial_progress(model), state=state, problem=problem, hint=hint)


# ---- the process of one download, a child of the worker, so that downloads do not delay tokens
#
# Gets the model's name on the command line, writes one DownloadProgress per line to stdout, and ends with the
# download or when its stdin is closed. Killing it pauses the download: partial files are on disk.


def main(model: str) -> int:
    """Downloads `model`. Exit status 0 if it is complete, 1 if the last line reports a failure."""
    threading.Thread(target=_end_with_the_worker, name="reader", daemon=True).start()
    meter = Meter(model)

    def heard(done_bytes: int, total_bytes: int) -> None:
        if progress := meter.take(done_bytes, total_bytes):
            _say(progress)

    try:
        Download(model, heard).run()
    except Exception as error:  # boundary: every error is reported to the window
        failed = failure(error, command="download_model")
        problem = failed.message
        if failed.kind == "internal":
            import traceback

            traceback.print_exc()
            problem = "The download failed because of an error in Draftlight."
        _say(_progress(model, "failed", problem, failed.hint))
        return 1
    _say(DownloadProgress(model, "done", meter.total_bytes, meter.total_bytes))
    return 0


def _say(progress: DownloadProgress) -> None:
    try:
        sys.stdout.buffer.write(encode(progress))
        sys.stdout.buffer.flush()
    except OSError:
        os._exit(0)  # the worker has closed the pipe


def _end_with_the_worker() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)
