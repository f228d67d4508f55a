"""Loading a model, and what a loaded one is."""

from __future__ import annotations

from msgspec import Struct

from core.answer_format import AnswerFormat
from core.events.wire import Wire
from core.settings import Settings, assign_all
from core.settings.cluster import Cluster


class LoadModel(Wire, frozen=True):
    """Load `model`: `starter`, a folder, or a hub name. Replaces the loaded one only if it succeeds.

    With a `cluster` it is loaded over all its machines. A worker does that once: for another cluster, or the
    same one again, it must be started anew.
    """

    model: str
    cluster: Cluster | None = None


class UnloadModel(Wire, frozen=True):
    """Free the model and its caches."""


class ModelDefault(Struct, frozen=True):
    """What a model's own generation_config gives for the setting `key`.

    `given` is what stands there: another than `value` if that is not allowed here.
    """

    key: str
    value: float
    given: float


class ModelInfo(Struct, frozen=True):
    """The loaded model. `family` is the tokenizer's fingerprint, `family_name` what people call it.

    `speculates` is False where rollback cannot be exact; `why_not` then says why. `defaults` are the
    model's own sampling; `defaults_problem` says which values of its sampling and of its stop ids were
    ignored. `thinks`: thinking before the answer can be switched (`chat.thinking`). `format` is how it writes
    answers, whatever a prompt begins.
    `reference` is what was asked for when it was loaded: `starter`, a folder, or a hub name. `machines` are
    the names of those that it runs over, this one first; none if it runs here alone.
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
    format: AnswerFormat = AnswerFormat()
    reference: str = ""
    machines: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """Draftlight's settings with the model's own sampling: what holds until a person chooses."""
        values = [(e.key, int(e.value) if e.value.is_integer() else e.value) for e in self.defaults]
        return assign_all(Settings(), values)


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
