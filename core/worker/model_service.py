"""ModelService: what is asked about the models on this machine, on a thread of its own.

The main thread may be in the middle of an answer for minutes; listing, importing and downloading
must not wait for that, and need no MLX. Commands are carried out in the order they came.
"""

from __future__ import annotations

import queue
import shutil
import threading
import traceback
from collections.abc import Callable

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
from core.models.library import hub
from core.models.library.catalogue import Catalogue
from core.models.library.need import Machine
from core.models.library.suggested import suggested
from core.system.paths import data_dir, models_dir
from core.worker.downloads import Downloads
from core.worker.folders_in_use import FoldersInUse

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
    """`say` takes events from any thread; `in_use` knows the folders that must stay."""

    def __init__(self, say: Callable[[Event], None], machine: Machine, in_use: FoldersInUse) -> None:
        self._say = say
        self._in_use = in_use
        self._catalogue = Catalogue(machine)
        self._downloads = Downloads(say, self._list_again)
        self._queue: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self, command: Command) -> bool:
        """Whether `command` is about models on the disk; then it will be carried out."""
        if not isinstance(command, _COMMANDS):
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="models", daemon=True)
            self._thread.start()
        self._queue.put(command)
        return True

    def close(self) -> None:
        """Pause what is under way and wait for the end of the thread."""
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
            except Exception as error:  # the boundary: whatever went wrong, the window is told
                if not isinstance(error, DraftlightError):
                    traceback.print_exc()
                name = str(type(command).__struct_config__.tag)
                self._say(failure(error, command=name, request=request))

    def _carry_out(self, command: Command) -> None:
        match command:
            case ListModels(request):
                self._say(self._listing(request))
            case LookUpModels():
                # A hub may take its time; a pause must not wait for it.
                threading.Thread(target=self._look_up, args=(command,), name="look-up", daemon=True).start()
            case CheckMachines():
                # Machines may take their time, too.
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
        from core.cluster.loading import Gathering

        try:
            with Gathering(command.cluster, command.model) as gathering:
                self._say(gathering.checked(command.request))
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
