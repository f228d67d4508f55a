"""Models: the loaded one, those on this machine, downloads, and one model on several machines.

    list_models                    → model_list
    look_up_models                 → models_found | failed
    import_model, remove_model     → model_imported | model_removed | failed
    download_model (also resumes)  → download_progress* (running … then done, paused or failed)
    pause_download                 → download_progress(state="paused")
    cancel_download                → download_progress(state="cancelled")

These are answered at any time, also while a model is loaded or answers. After each change of the list an
unrequested `model_list` (empty `request`) follows.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.events.wire import Wire
from core.settings import Settings, assign_all
from core.settings.prefill import KvCache


class LoadModel(Wire, frozen=True):
    """Loads `model`: `starter`, a folder, or a hub name. The loaded one is replaced only on success.

    A worker that `mlx.launch` started as rank 0 loads it over all ranks.
    """

    model: str


class UnloadModel(Wire, frozen=True):
    """Frees the model and its caches."""


class ModelDefault(Struct, frozen=True):
    """Default for the setting `key` from the model's generation_config.json.

    `given`: the value in the file, `value`: the nearest allowed one.
    """

    key: str
    value: float
    given: float


class ModelInfo(Struct, frozen=True):
    """The loaded model.

    - `reference`: as in `load_model`. `family`: the tokenizer's fingerprint; `family_name`: its display name.
    - `speculates`: False if rollback is not exact, with the reason in `why_not`.
    - `defaults`: the model's own sampling. `defaults_problem`: its ignored sampling values and stop ids.
    - `kv_why_not`: why its caches cannot be quantised; empty if they can.
    - `thinks`: `chat.thinking` has an effect. `thinks_by_default`: it thinks first if that is “auto”.
    - `has_head`: there is a head for it.
    - `format`: the syntax of its answers.
    - `sees`: images can be sent to it; else `why_unseeing` says why not.
    - `machines`: names of the ranks that hold the model; empty if this process holds all of it.
    """

    name: str
    path: str
    family: str
    family_name: str
    architecture: str
    dtype: str
    quantisation: str
    parameters: int
    size_bytes: int
    context_tokens: int
    vocabulary: int
    layers: int
    speculates: bool
    why_not: str = ""
    defaults: tuple[ModelDefault, ...] = ()
    defaults_problem: str = ""
    thinks: bool = False
    thinks_by_default: bool = True
    format: AnswerFormat = AnswerFormat()
    reference: str = ""
    machines: tuple[str, ...] = ()
    has_head: bool = False
    kv_why_not: str = ""
    sees: bool = False
    why_unseeing: str = ""

    @property
    def settings(self) -> Settings:
        """The default settings with the model's own sampling."""
        values = [(e.key, int(e.value) if e.value.is_integer() else e.value) for e in self.defaults]
        return assign_all(Settings(), values)


class LoadProgress(Wire, frozen=True):
    """`fraction`: None while unknown. `stage`: a phrase to display."""

    model: str
    stage: str
    fraction: float | None = None


class ModelLoaded(Wire, frozen=True):
    """The model is ready for requests."""

    info: ModelInfo


class TurnTaken(Wire, frozen=True):
    """The turn of `request` has come, and its model `info` is loaded."""

    request: str
    info: ModelInfo


class ModelUnloaded(Wire, frozen=True):
    """No model is loaded."""


class ModelReleased(Wire, frozen=True):
    """The model left memory: it was idle (`unload_idle`), or makes room for the one that is being loaded. If
    that fails too, the next request loads the released one again: `load_progress`*, `model_loaded`, then the
    request's own events, or its `failed`.
    """


LoadCommand = LoadModel | UnloadModel
LoadEvent = LoadProgress | ModelLoaded | ModelUnloaded | ModelReleased | TurnTaken


# ---- models on this machine


Fit = Literal["fits", "tight", "too-large"]
# `hub-cache` and `other-app`: in a folder of another program, where Draftlight changes nothing.
ModelSource = Literal["starter", "download", "hub-cache", "other-app", "folder"]
DownloadState = Literal["running", "paused", "failed", "done", "cancelled"]

# Above this share of the limit a model is tight.
_TIGHT = 0.8
# The chunk of a prompt for which working memory is estimated: the default of prefill.chunk_tokens.
CHUNK_TOKENS = 512


class MemoryNeed(Struct, frozen=True):
    """Estimated memory of a model in bytes, without loading it.

    `weights`: as loaded on this machine. Cache: `growing` per token of the context, `windowed` per token up
    to `window_tokens`, and the constant `state`; `growing_layers`: the number of layers with a growing cache,
    one of which is copied at a time as it grows. `working`: for a chunk of `CHUNK_TOKENS` of the prompt, plus
    `working_growing` per token of the context. `process`: the process without a model. Of a quantised cache:
    `growing_8` or `growing_4` instead of `growing`, 0 if the layers cannot be quantised, and
    `working_quantised` instead of `working_growing`, because its attention holds all scores. `eyes`: what the
    first image adds to `weights`; 0 for a model that cannot see.
    """

    weights: int = 0
    growing: int = 0
    windowed: int = 0
    window_tokens: int = 0
    state: int = 0
    working: int = 0
    working_growing: int = 0
    process: int = 0
    growing_8: int = 0
    growing_4: int = 0
    working_quantised: int = 0
    growing_layers: int = 0
    eyes: int = 0

    def with_cache(self, kv: KvCache) -> MemoryNeed:
        """The need with a cache that is quantised as in `kv`."""
        growing = {"8": self.growing_8, "4": self.growing_4}.get(kv.bits, 0)
        if not growing:
            return self
        return replace(self, growing=growing, working_growing=self.working_quantised)

    def cache_at(self, context_tokens: int) -> int:
        """Size of the KV cache at this context length."""
        inside = min(context_tokens, self.window_tokens)
        return self.growing * context_tokens + self.windowed * inside + self.state

    def growth(self, held_tokens: int, context_tokens: int) -> int:
        """Memory for the cache to grow from `held_tokens`, 0 for no cache, at its peak.

        More than the difference of `cache_at` by the copies of the layer that grows.
        """
        growing = self.growing * context_tokens
        constant = self.cache_at(context_tokens) - growing
        held = self.cache_at(held_tokens) if held_tokens else 0
        # Two copies of a quantised layer, as measured on MLX's CPU build.
        copies = 2 if self.growing in (self.growing_8, self.growing_4) else 1
        copied = copies * growing // self.growing_layers if self.growing_layers else 0
        return constant + growing + copied - held

    def working_at(self, context_tokens: int, chunk_tokens: int = CHUNK_TOKENS) -> int:
        """Working memory of a chunk at this context length.

        Until the next one, a sliding window holds all of a chunk besides its columns.
        """
        a_chunk = self.working + self.working_growing * context_tokens
        if context_tokens > self.window_tokens:
            a_chunk += self.windowed * CHUNK_TOKENS
        return a_chunk * chunk_tokens // CHUNK_TOKENS

    def total_at(self, context_tokens: int) -> int:
        """Weights, cache, working memory and the process at this context length."""
        used = self.weights + self.growth(0, context_tokens) + self.working_at(context_tokens)
        return used + self.process


def fit_of(need_bytes: int, limit_bytes: int) -> Fit:
    """Whether `need_bytes` fit into `limit_bytes`; tight above 80%."""
    if need_bytes > limit_bytes:
        return "too-large"
    return "tight" if need_bytes > _TIGHT * limit_bytes else "fits"


class ModelHead(Struct, frozen=True):
    """A trained drafter of a model: found, or offered in a `repository` on the hub.

    `label`: what people call it. `size_bytes`: 0 if unknown. `problem`: why a found one is not used.
    `source`: its file or folder. `gain`: accepted guesses of it in each step here; 0 if not measured.
    """

    label: str
    size_bytes: int = 0
    problem: str = ""
    repository: str = ""
    source: str = ""
    gain: float = 0.0


class ModelEntry(Struct, frozen=True):
    """One model on this machine, described from its config and headers.

    `reference`: for `load_model`. `family`: fingerprint of its tokenizer, empty if unreadable. `bits`: 0 if
    not quantised. `dtype`: on disk. `heads`: those found, of which one without a problem drafts, then those
    to download. `has_template`: it has a chat template. `problem`, `hint`: why it does not load.
    `listed_in`: the imported folder of several models in which it was found; else empty. `good_at`: what a
    suggested model is good at; empty for installed ones. `exactness`: what the setting `exact` allows on this
    machine, `readings`: likelihoods of right answers by ways of reading; both empty if not measured. `sees`:
    images can be sent to it.
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
    heads: tuple[ModelHead, ...] = ()
    has_template: bool = True
    need: MemoryNeed = MemoryNeed()
    problem: str = ""
    hint: str = ""
    listed_in: str = ""
    good_at: str = ""
    exactness: str = ""
    readings: str = ""
    sees: bool = False


def api_id(model: ModelInfo | ModelEntry) -> str:
    """A model's id for API clients, in one word, because clients have it on command lines.

    The last part of its hub name or folder, which distinguishes quantisations of one model; the starter's is
    its name.
    """
    path = PurePath(model.reference)
    if path.parent.name == "snapshots":  # in the hub's cache
        path = path.parent.parent
    name = path.name.rpartition("--")[2]
    return "-".join((model.name if name in ("", "starter") else name).split())


class HubModel(Struct, frozen=True):
    """A model on the hub. `downloads`: the hub's count. `sees`: by what its page says, images can be sent to
    it.
    """

    model: str
    downloads: int = 0
    gated: bool = False
    sees: bool = False


# ---- commands


class ListModels(Wire, frozen=True):
    """Lists the models on this machine and the unfinished downloads."""

    request: str


class LookUpModels(Wire, frozen=True):
    """Searches the hub for model names that contain `text`. Besides downloads the only network request."""

    request: str
    text: str


class DownloadModel(Wire, frozen=True):
    """Downloads `model` (owner/name) from the hub, or resumes its download."""

    model: str


class PauseDownload(Wire, frozen=True):
    """Stops the download within a second and keeps the partial files."""

    model: str


class CancelDownload(Wire, frozen=True):
    """Stops a running, paused or failed download within a second and removes its files."""

    model: str


class ImportModel(Wire, frozen=True):
    """Adds the model folder at `path` to the list, without copying it."""

    request: str
    path: str


class RemoveModel(Wire, frozen=True):
    """Removes the model `reference`: an imported folder from the list only, others from the disk.

    Refused for the starter model and for models in use.
    """

    request: str
    reference: str


# ---- events


class DownloadProgress(Wire, frozen=True):
    """Progress of a download, at most four times per second.

    `total_bytes`: 0 until known. `bytes_per_s`: of the last few seconds. `problem`, `hint`: set on failure,
    which keeps the partial files.
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
    """Answer to `list_models`; also sent after each change.

    `downloads`: running, paused or failed. `limit_bytes`: memory limit for models. `folder`: of downloads;
    `free_bytes`: free on its disk. `suggested`: models to download, the best first, whose `reference` is the
    hub name.
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


# ---- one model over the ranks of `mlx.launch`


class ClusterEnded(Wire, frozen=True):
    """A rank failed or was lost, and all ranks end. Last event before this worker exits."""

    message: str
    hint: str = ""


ClusterEvent = ClusterEnded
