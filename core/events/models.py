"""Loading a model, and what a loaded one is."""

from __future__ import annotations

from msgspec import Struct

from core.events.wire import Wire


class LoadModel(Wire, frozen=True):
    """Load `model`: `starter`, a folder, or a hub name. Replaces the loaded one only if it succeeds."""

    model: str


class UnloadModel(Wire, frozen=True):
    """Free the model and its caches."""


class ModelInfo(Struct, frozen=True):
    """The loaded model. `family` is the tokenizer's fingerprint, `family_name` what people call it.

    `speculates` is False where rollback cannot be exact; `why_not` then says why.
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


class LoadProgress(Wire, frozen=True):
    """`fraction` is None while it cannot be known. `stage` is a plain phrase to show."""

    model: str
    stage: str
    fraction: float | None = None


class ModelLoaded(Wire, frozen=True):
    """The model answers requests from now on."""

    info: ModelInfo


class ModelUnloaded(Wire, frozen=True):
    """No model is loaded."""


LoadCommand = LoadModel | UnloadModel
LoadEvent = LoadProgress | ModelLoaded | ModelUnloaded
