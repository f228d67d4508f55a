"""DraftModels: the second model, for drafting and for scoring passages; loaded at first use.

One is held at a time. It must be of the target's tokenizer family; to draft it must also be able
to take back guesses. Worker's main thread.
"""

from __future__ import annotations

from core.decoding.proposer import ModelProposer
from core.errors import DraftModelError
from core.events import ModelInfo
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel, load
from core.prefill.scorers.scorer import ScoringDraft


class DraftModels:
    """`target` describes the model they help."""

    def __init__(self, target: ModelInfo) -> None:
        self._target = target
        self._held: tuple[str, LoadedModel] | None = None
        self.proposer: ModelProposer | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        """Of the model that is held, if one is."""
        return (self._held[1].info.path,) if self._held else ()

    def drafting(self, reference: str) -> ModelProposer:
        """The draft model that drafts. Raises `DraftModelError`, `ModelError`."""
        if not reference:
            raise DraftModelError(
                "The drafter “draft-model” needs a second model, and none was chosen.",
                "Set draft_model.model to a folder or hub name, or choose another drafter.",
            )
        draft = self._of_family(reference)
        if self.proposer is None:
            proposer = ModelProposer(draft)
            if not proposer.sequence.keeps_all:
                raise DraftModelError(
                    f"{draft.info.name} cannot take back guesses, so it cannot draft.",
                    "Choose a draft model with plain full attention.",
                )
            self.proposer = proposer
        return self.proposer

    def scoring(self, reference: str, *, drafts: bool) -> ScoringDraft:
        """The draft model that scores, loaded if it is not.

        If it also `drafts` in this answer it reads into the sequence that drafting needs anyway,
        else into one that is dropped. Raises `DraftModelError`, `ModelError`.
        """
        if not reference:
            raise DraftModelError(
                "The scorer “draft-model” needs a second model, and none was chosen.",
                "Set draft_model.model to a folder or hub name, or choose another scorer.",
            )
        draft = self._of_family(reference)
        sequence = self.proposer.sequence if drafts and self.proposer else CachedSequence(draft.new_cache)
        return ScoringDraft(draft, sequence)

    def forget(self) -> None:
        """Drop what the draft model has read."""
        if self.proposer is not None:
            self.proposer.sequence.clear()

    def _of_family(self, reference: str) -> LoadedModel:
        if self._held is not None and self._held[0] == reference:
            return self._held[1]
        draft, target = load(reference), self._target
        if draft.info.family != target.family:
            raise DraftModelError(
                f"{draft.info.name} ({draft.info.family_name}) and {target.name} ({target.family_name})"
                " have different tokenizers.",
                f"Choose a draft model of the {target.family_name} family.",
            )
        self._held, self.proposer = (reference, draft), None
        return draft
