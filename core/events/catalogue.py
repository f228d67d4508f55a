"""The models on this machine, what each needs of its memory, and how others get here.

    list_models                    → model_list
    look_up_models                 → models_found | failed
    import_model, remove_model     → model_imported | model_removed | failed
    download_model (also resumes)  → download_progress* (running … then done, paused or failed)
    pause_download                 → download_progress(state="paused")
    cancel_download                → download_progress(state="cancelled")

They are answered at any time, also while a model is loaded or answers. After anything that changes
what there is, an unasked `model_list` (empty `request`) follows.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from core.events.wire import Wire

Fit = Literal["fits", "tight", "too-large"]
ModelSource = Literal["starter", "download", "hub-cache", "folder"]
DownloadState = Literal["running", "paused", "failed", "done", "cancelled"]

# Above this share of the limit a model is tight.
_TIGHT = 0.8


class MemoryNeed(Struct, frozen=True):
    """What a model takes of this machine's memory, in bytes: an estimate, made without loading it.

    `weights` as they are held here; `growing` for each token of the context; `windowed` for each
    token up to `window_tokens`; `state` whatever the context is; `working` for reading a chunk of
    prompt, of which `working_growing` comes on top for each token of the context.
    """

    weights: int = 0
    growing: int = 0
    windowed: int = 0
    window_tokens: int = 0
    state: int = 0
    working: int = 0
    working_growing: int = 0

    def cache_at(self, context_tokens: int) -> int:
        """The KV cache, full with that many tokens."""
        inside = min(context_tokens, self.window_tokens)
        return self.growing * context_tokens + self.windowed * inside + self.state

    def working_at(self, context_tokens: int) -> int:
        """Everything that is neither weights nor cache."""
        return self.working + self.working_growing * context_tokens

    def total_at(self, context_tokens: int) -> int:
        """All of it."""
        return self.weights + self.cache_at(context_tokens) + self.working_at(context_tokens)


def fit_of(need_bytes: int, limit_bytes: int) -> Fit:
    """Whether `need_bytes` go into `limit_bytes`; tight above 80% of them."""
    if need_bytes > limit_bytes:
        return "too-large"
    return "tight" if need_bytes > _TIGHT * limit_bytes else "fits"


class ModelEntry(Struct, frozen=True):
    """One model on this machine, as its files tell; no weight was read.

    `reference` is what `load_model` takes. `family` is the fingerprint of its tokenizer, empty if
    that cannot be read. `bits` is 0 where weights are not quantised; `dtype` is theirs on disk.
    `problem` says why it cannot be loaded, `hint` what to do; both are empty if it can.
    """

    reference: str
    name: str
    source: ModelSource
    path: str
    architecture: str = ""
    family: str = ""
    family_name: str = ""
    parameters: int = 0
    disk_bytes: int = 0
    bits: int = 0
    group_size: int = 0
    dtype: str = ""
    context_tokens: int = 0
    layers: int = 0
    need: MemoryNeed = MemoryNeed()
    problem: str = ""
    hint: str = ""


class HubModel(Struct, frozen=True):
    """A model on the hub that could be downloaded. `downloads` is how often it was, as the hub counts."""

    model: str
    downloads: int = 0
    gated: bool = False


# ---- commands


class ListModels(Wire, frozen=True):
    """Every model on this machine, and every download that is not finished."""

    request: str


class LookUpModels(Wire, frozen=True):
    """Ask the hub for models whose names contain `text`; the only word but a download that goes out."""

    request: str
    text: str


class DownloadModel(Wire, frozen=True):
    """Get `model` (owner/name) from the hub, or go on where its download stopped."""

    model: str


class PauseDownload(Wire, frozen=True):
    """Stop within a second and keep what arrived."""

    model: str


class CancelDownload(Wire, frozen=True):
    """Stop within a second and remove what arrived; of a paused or failed download, too."""

    model: str


class ImportModel(Wire, frozen=True):
    """List the model folder at `path` from now on. It stays where it is; nothing is copied."""

    request: str
    path: str


class RemoveModel(Wire, frozen=True):
    """Remove the model `reference`. An imported folder is only forgotten, anything else is erased.

    Refused for the starter model and for models in use.
    """

    request: str
    reference: str


# ---- events


class DownloadProgress(Wire, frozen=True):
    """How the download of `model` stands; while it runs at most four times a second.

    `total_bytes` is 0 until the hub was asked. `bytes_per_s` is over the last few seconds. `problem`
    and `hint` are set when it failed; what arrived is kept then.
    """

    model: str
    state: DownloadState
    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_s: float = 0.0
    seconds_left: float | None = None
    problem: str = ""
    hint: str = ""


class ModelList(Wire, frozen=True):
    """Answer to `list_models`, and unasked after a change.

    `downloads` are those under way, paused or failed. `limit_bytes` is what models may use of the
    memory, `free_bytes` what is free where `folder`, the place of downloads, is. `suggested` could be
    downloaded: their `reference` is the hub name, and what they need is worked out beforehand.
    """

    request: str
    folder: str
    models: tuple[ModelEntry, ...]
    downloads: tuple[DownloadProgress, ...] = ()
    limit_bytes: int = 0
    free_bytes: int = 0
    suggested: tuple[ModelEntry, ...] = ()


class ModelsFound(Wire, frozen=True):
    """Answer to `look_up_models`, most downloaded first."""

    request: str
    text: str
    models: tuple[HubModel, ...]


class ModelImported(Wire, frozen=True):
    """Answer to `import_model`."""

    request: str
    model: ModelEntry


class ModelRemoved(Wire, frozen=True):
    """Answer to `remove_model`."""

    request: str
    reference: str
    name: str


CatalogueCommand = (
    ListModels | LookUpModels | DownloadModel | PauseDownload | CancelDownload | ImportModel | RemoveModel
)
CatalogueEvent = ModelList | ModelsFound | DownloadProgress | ModelImported | ModelRemoved
