"""ModelSession: a loaded model and all that lives exactly as long as it does.

Engine's thread.
"""

from __future__ import annotations

from collections.abc import Generator

from core.decoding.grammar import Grammars
from core.engine.draft_models import DraftModels
from core.kv.prefix_cache import PrefixCache
from core.machine.profile import MachineProfile
from core.models.loader import LoadedModel
from core.tables.prebuilt import PrebuiltTables


class ModelSession:
    """`model` with its contexts, draft models and grammars, what was measured about it and its built tables.

    `rest` is what an answer skipped and may still be read while nothing is asked.
    """

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self.prefix_cache = PrefixCache(model.new_cache)
        self.drafts = DraftModels(model.info)
        self.profile = MachineProfile(model)
        self.grammars = Grammars(model)
        self.beforehand = PrebuiltTables(model.info)
        self.rest: Generator[None, None, None] | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        """Of the model and of the draft model, if one is held."""
        return (self.model.info.path, *self.drafts.folders)

    def forget_contexts(self) -> None:
        """Drop the reusable prefixes, those of the draft model, too."""
        self.rest = None
        self.prefix_cache.clear()
        self.drafts.forget()

    def some_rest(self) -> bool:
        """Read a piece of `rest`; whether there was one."""
        if self.rest is None:
            return False
        rest, self.rest = self.rest, None  # not taken up again if it fails
        if next(rest, self) is not self:
            self.rest = rest
        return True
