"""ModelService: commands about models on the disk, on a separate thread, in order.

The main thread may answer for minutes; listing, importing and downloading must not wait for it and do not use
MLX.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from core.errors import DraftlightError
from core.events import (
    CancelDownload,
    CheckMachines,
    Command,
    DownloadModel,
    DownloadProgress,
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
    failure,
)
from core.models import download as hub
from core.models.catalogue import Catalogue, suggested
from core.models.config import Machine
from core.models.places import find
from core.system.paths import data_dir, models_dir
from core.worker.downloads import Downloads

_COMMANDS = (
    ListModels,
    LookUpModels,
    DownloadModel,
    PauseDownload,
    CancelDownload,
    ImportModel,
    RemoveModel,
    CheckMachines,
)


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
            case CheckMachines():
                # Machines may be slow, too.
                threading.Thread(target=self._check, args=(command,), name="machines", daemon=True).start()
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

    def _check(self, command: CheckMachines) -> None:
        from core.cluster.loading import ClusterSetup

        try:
            with ClusterSetup(command.cluster, command.model) as setup:
                self._say(setup.checked(command.request))
        except Exception as error:  # the boundary, as in `_run`
            if not isinstance(error, DraftlightError):
                traceback.print_exc()
            self._say(failure(error, command="check_machines", request=command.request))

    def _cancel(self, model: str) -> None:
        try:
            self._downloads.cancel(model)
        except DraftlightError as error:
            self._say(DownloadProgress(model, "failed", problem=error.message, hint=error.hint))

    def _listing(self, request: str) -> ModelList:
        folder = models_dir()
        place = next((each for each in (folder, *folder.parents) if each.exists()), data_dir())
        return ModelList(
            request,
            str(folder),
            self._catalogue.entries(),
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
        """Registers models that will be loaded; call `settled` once with the same references."""
        with self._lock:
            self._coming.update(references)

    def settled(self, loaded: Sequence[str], *references: str) -> None:
        """Loading ended; `loaded` are the folders now in memory."""
        with self._lock:
            self._coming.subtract(references)
            self._coming += Counter()  # removes zero counts
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
