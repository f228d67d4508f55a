"""The state of the installed models and of the downloads, as one record. Pure.

`handle()` returns the record after an event of the worker. The controller sends the requests.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from core.events import (
    DownloadProgress,
    Failed,
    HubModel,
    ModelEntry,
    ModelImported,
    ModelInfo,
    ModelList,
    ModelsFound,
    fit_of,
)
from core.events.models import CatalogueEvent
from core.settings.prefill import KvCache

_OFFER_CONTEXT_TOKENS = 8192
_DISK_SHARE = 0.9
# The share of a model's parameters from which another one is of about its size.
_SAME_SIZE = 0.75


class ModelsState(Struct, frozen=True):
    """State of the models. `listed` is False until the worker has answered. `info` is the loaded model,
    `loading` the reference of the one being loaded, `busy` whether an answer is running. `released`: the
    loaded model left memory while idle, and the next question loads it again.

    `asked` is the query sent to the hub, `found` its results, `finding` whether the search is running.
    `problem` and `hint` describe the last failed command. `kv`: the cache
    settings that estimates are for.
    """

    listed: bool = False
    folder: str = ""
    models: tuple[ModelEntry, ...] = ()
    downloads: tuple[DownloadProgress, ...] = ()
    limit_bytes: int = 0
    free_bytes: int = 0
    suggested: tuple[ModelEntry, ...] = ()
    info: ModelInfo | None = None
    loading: str = ""
    fraction: float | None = None
    busy: bool = False
    asked: str = ""
    finding: bool = False
    found: tuple[HubModel, ...] = ()
    problem: str = ""
    hint: str = ""
    kv: KvCache = KvCache()
    released: bool = False

    @property
    def disk_bytes(self) -> int:
        return sum(entry.disk_bytes for entry in self.models)

    @property
    def loaded(self) -> ModelEntry | None:
        path = self.info.path if self.info else None
        return next((entry for entry in self.models if entry.path == path), None)

    @property
    def taken(self) -> set[str]:
        """The references of the models that are installed or downloading."""
        return {entry.reference for entry in self.models} | {each.model for each in self.downloads}

    def entry(self, reference: str) -> ModelEntry | None:
        return next((entry for entry in self.models if entry.reference == reference), None)

    def download(self, model: str) -> DownloadProgress | None:
        return next((each for each in self.downloads if each.model == model), None)


def handle(state: ModelsState, event: CatalogueEvent) -> ModelsState:
    match event:
        case ModelList(_, folder, models, downloads, limit_bytes, free_bytes, suggested):
            return replace(
                state,
                listed=True,
                folder=folder,
                models=models,
                downloads=_merged(state.downloads, downloads),
                limit_bytes=limit_bytes,
                free_bytes=free_bytes,
                suggested=suggested,
            )
        case ModelsFound(_, text, models):
            return replace(state, finding=False, found=models) if text == state.asked else state
        case DownloadProgress():
            return replace(state, downloads=_with(state.downloads, event))
        case ModelImported(_, model):
            # The list that follows positions it.
            models = state.models if state.entry(model.reference) else (*state.models, model)
            return replace(state, models=models, problem="", hint="")
        case _:
            return replace(state, problem="", hint="")


def model_to_offer(state: ModelsState) -> ModelEntry | None:
    """Returns the best suggestion that memory and disk have room for, or the best one of about its size that
    sees images; None unless the starter is the only model.
    """
    if state.downloads or [entry.source for entry in state.models] != ["starter"]:
        return None
    fitting = [
        entry
        for entry in state.suggested
        if entry.disk_bytes <= _DISK_SHARE * state.free_bytes
        and fit_of(entry.need.total_at(_OFFER_CONTEXT_TOKENS), state.limit_bytes) == "fits"
    ]
    if not fitting:
        return None
    least = _SAME_SIZE * fitting[0].parameters
    return next((entry for entry in fitting if entry.sees and entry.parameters >= least > 0), fitting[0])


def fail(state: ModelsState, failed: Failed, searched: str = "") -> ModelsState:
    """Returns the state after a failed command. `searched` is the text of a search of the hub."""
    if failed.command == "look_up_models" and searched != state.asked:
        return state
    finding = state.finding and failed.command != "look_up_models"
    return replace(state, finding=finding, problem=failed.message, hint=failed.hint)


def look_up(state: ModelsState, text: str) -> ModelsState:
    """Returns the state after a hub search for `text` began; an empty text ends the search."""
    return replace(state, asked=text, finding=bool(text), found=(), problem="", hint="")


def forget_worker(state: ModelsState) -> ModelsState:
    """Returns the state after the worker's exit, which ends its downloads; their data stays."""
    stopped = tuple(
        replace(each, state="paused", bytes_per_s=0.0, seconds_left=None) if each.state == "running" else each
        for each in state.downloads
    )
    return replace(
        state,
        info=None,
        loading="",
        fraction=None,
        busy=False,
        finding=False,
        downloads=stopped,
    )


def _with(downloads: tuple[DownloadProgress, ...], event: DownloadProgress) -> tuple[DownloadProgress, ...]:
    others = tuple(each for each in downloads if each.model != event.model)
    if event.state in ("done", "cancelled"):
        return others
    if len(others) == len(downloads):
        return (*downloads, event)
    return tuple(event if each.model == event.model else each for each in downloads)


def _merged(
    known: tuple[DownloadProgress, ...], listed: tuple[DownloadProgress, ...]
) -> tuple[DownloadProgress, ...]:
    """Returns the listed downloads in their previous order; the reason of a failure is kept."""
    reasons = {each.model: each for each in known if each.state == "failed"}
    order = {each.model: place for place, each in enumerate(known)}
    kept = [
        reasons[each.model] if each.state == "paused" and each.model in reasons else each for each in listed
    ]
    return tuple(sorted(kept, key=lambda each: order.get(each.model, len(order))))
