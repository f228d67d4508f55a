"""Readers: the ways a prompt is read for `bench quality`: densely, by each scorer, and by no scorer.

The three that do not score are what a scorer has to beat at the same keep: `random` passages, the
`head-and-tail` of the prompt, and its `end`. `hindsight-N` is what no scorer can be expected to beat:
it is shown the next N tokens of the text that follows, and keeps what all of the model's layers look
for while they are read behind the whole prompt. These go through the product's own selection and
reading with scores that know nothing or too much; the product itself has no such scorers. Scorers
run as in an answer, through `core.prefill.reading`; one that did not skip is an error here, never a
quiet dense run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.bench.quality.reader_names import DENSE, SCORELESS, hindsight
from core.bench.quality.session import Session
from core.errors import RequestError
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.models.prompt import Prompt, offsets
from core.prefill.layout import Layout, Passages, layout, unknown_layout
from core.prefill.read import read_kept, read_prompt
from core.prefill.reading import PromptText, Reading, ReadingInputs
from core.prefill.scorers.scorer import ScoringDraft, carried, means_of
from core.prefill.select import select
from core.settings.prefill import SCORERS, Prefill

Scores = np.ndarray[Any, Any]


class Ahead(Struct, frozen=True):
    """What is known only afterwards: the prompt read densely, and the `tokens` that follow it."""

    full: Session
    tokens: list[int]


class Reader(ABC):
    """Reads prompts in one way. Owned by the thread that loaded the model."""

    def __init__(self, name: str, loaded: LoadedModel, settings: Prefill) -> None:
        self.name = name
        self._loaded = loaded
        self._settings = settings

    def read(self, prompt: Prompt, ahead: Ahead | None = None) -> Session:
        """`prompt` in a sequence of its own. Raises `RequestError` if it was not read this way.

        `ahead` is for the readers by hindsight, which need it; the others do not look at it.
        """
        sequence = CachedSequence(self._loaded.new_cache)
        if not sequence.keeps_all:
            raise RequestError(
                f"{self._loaded.info.name} cannot go back to a prefix, which this bench needs.",
                "Choose a model with plain full attention.",
            )
        self._fill(sequence, prompt, ahead)
        return Session(self._loaded, sequence, prompt.ids)

    @abstractmethod
    def _fill(self, sequence: CachedSequence, prompt: Prompt, ahead: Ahead | None) -> None:
        """Bring the empty `sequence` to all of `prompt` but its last token."""

    def _layout(self, prompt: Prompt) -> Layout:
        if not prompt.regions:
            return unknown_layout(len(prompt.ids))
        return layout(prompt, offsets(self._loaded.tokenizer, prompt))


class _Dense(Reader):
    """Everything."""

    def _fill(self, sequence: CachedSequence, prompt: Prompt, ahead: Ahead | None) -> None:
        steps = read_prompt(
            self._loaded.model, sequence, prompt.ids, chunk_tokens=self._settings.chunk_tokens
        )
        for _ in steps:
            pass


class _Scored(Reader):
    """By one of the product's scorers."""

    def __init__(self, name: str, loaded: LoadedModel, settings: Prefill, draft: LoadedModel | None) -> None:
        super().__init__(name, loaded, settings)
        self._draft = draft

    def _fill(self, sequence: CachedSequence, prompt: Prompt, ahead: Ahead | None) -> None:
        inputs = ReadingInputs(self._scoring_draft)
        text = PromptText(prompt.ids, prompt.asked, lambda: self._layout(prompt))
        reading = Reading("bench", self._loaded, sequence, text, self._settings, inputs)
        for _ in chain(reading.plan(), reading.events()):
            pass
        if not reading.outcome.sparse:
            raise RequestError(
                f"{self.name} read all of {len(prompt.ids):,} tokens: {reading.outcome.reason}.",
                "Choose a longer --context or --document-context.",
            )

    def _scoring_draft(self) -> ScoringDraft:
        if self._draft is None:
            raise RequestError("There is no draft model to score with.", "Choose other --readers.")
        return ScoringDraft(self._draft, CachedSequence(self._draft.new_cache))


class _Chosen(Reader):
    """Passages chosen by scores that no scorer of the product gives."""

    @abstractmethod
    def _scores(self, ids: Sequence[int], passages: Passages, ahead: Ahead | None) -> Scores:
        """float32, one a passage."""

    def _fill(self, sequence: CachedSequence, prompt: Prompt, ahead: Ahead | None) -> None:
        known = self._layout(prompt)
        passages = known.passages(0, len(prompt.ids), self._settings)
        chosen = select(
            self._scores(prompt.ids, passages, ahead),
            known.always_read,
            passages,
            keep_pct=self._settings.keep_pct,
        )
        model, chunk = self._loaded.model, self._settings.chunk_tokens
        for _ in read_kept(model, sequence, prompt.ids, chosen.positions, chunk_tokens=chunk):
            pass


class _Scoreless(_Chosen):
    """Random passages, those nearest to both ends, or those nearest to the end."""

    def _scores(self, ids: Sequence[int], passages: Passages, ahead: Ahead | None) -> Scores:
        middles = (passages.firsts + passages.lengths / 2).astype(np.float32)
        if self.name == "head-and-tail":
            return np.asarray(np.abs(middles - len(ids) / 2))
        if self.name == "end":
            return middles
        return np.random.default_rng(list(ids)).random(len(passages), dtype=np.float32)


class _Hindsight(_Chosen):
    """What the tokens that follow attend to, put together as the product's scorers do."""

    def _scores(self, ids: Sequence[int], passages: Passages, ahead: Ahead | None) -> Scores:
        if ahead is None:
            raise RequestError(f"{self.name} needs to be shown what follows.", "Give it what follows.")
        attended = ahead.full.attended_by(ahead.tokens[: hindsight(self.name)])
        return carried(means_of(attended, passages))


def readers(
    names: Sequence[str], loaded: LoadedModel, settings: Prefill, draft: LoadedModel | None
) -> list[Reader]:
    """Dense first, then those named, each at the keep of `settings`. Raises `RequestError`."""
    made: list[Reader] = [_Dense(DENSE, loaded, settings)]
    for name in names:
        if name in SCORELESS:
            made.append(_Scoreless(name, loaded, settings))
        elif hindsight(name):
            made.append(_Hindsight(name, loaded, settings))
        elif name in SCORERS:
            own = replace(settings, mode="on", scorer=name)
            made.append(_Scored(name, loaded, own, draft if name == "draft-model" else None))
        else:
            raise RequestError(
                f"There is no reader called “{name}”.",
                f"Choose from {', '.join((*SCORERS, *SCORELESS))} and hindsight-N, N tokens.",
            )
    return made
