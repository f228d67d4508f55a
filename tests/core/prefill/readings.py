"""Readings of chats without an engine: tiny models of any architecture, and all that a plan depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec import Struct
from msgspec.structs import replace

from core.decoding.answer import Answer
from core.events import Attachment, Generate, Message, PrefillProgress, ReadingMap, ReadingPace
from core.kv.cached_sequence import CachedSequence
from core.prefill.reading import Reading, Unmeasured
from core.prefill.scorers import SCORERS
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep
from core.prompt import Prompt, render
from core.settings import Settings, assign_all
from tests.core.engine.support import loaded_of

CONTEXT_TOKENS = 8192
SAID = Message("assistant", "Under a tree.")
ANIMALS = ("zebra", "walrus", "badger", "lynx", "ibex", "heron", "otter", "quokka", "vole", "yak")
DOCUMENT = "\n".join(
    f"The {name} of valley {at} sleeps under tree {at * 7} and eats roots, then rests."
    for at, name in enumerate(ANIMALS)
)
ABOUT_THE_WALRUS, ABOUT_THE_OTTER = "Where sleeps the walrus?", "What eats the otter?"
SPARSE: dict[str, object] = {
    "prefill.mode": "on",
    "prefill.scorer": "lexical",
    "prefill.passages": "fixed",  # the toy's tokens are characters
    "prefill.keep_pct": 25,
    "prefill.chunk_tokens": 64,
    "drafting.drafter": "off",
}
DENSE = SPARSE | {"prefill.mode": "off"}
AUTO = SPARSE | {"prefill.mode": "auto", "prefill.threshold_tokens": 300}


class Measured(Unmeasured):
    """A machine that reads a token in `token_s`."""

    def __init__(self, token_s: float) -> None:
        self.pace = ReadingPace(token_s, 0.0)

    def dense_s(self, tokens: int, context_tokens: int = 0) -> float | None:
        assert self.pace is not None
        return self.pace.seconds(tokens, context_tokens)


class Read(Struct):
    """What came of a reading."""

    answer: Answer
    reading: Reading
    events: list[PrefillProgress | ReadingMap]

    @property
    def maps(self) -> list[ReadingMap]:
        return [event for event in self.events if isinstance(event, ReadingMap)]

    @property
    def steps(self) -> list[PrefillProgress]:
        return [event for event in self.events if isinstance(event, PrefillProgress)]

    @property
    def held(self) -> list[int]:
        """The positions that the answer's cache has."""
        columns = self.answer.sequence.columns
        return [int(at) for at in columns.places(0, columns.count)]


def failing(error: Exception | None) -> Any:
    """A scorer that raises, or whose scores are not numbers."""

    def score(inputs: ScorerInputs) -> Scoring:
        yield ScoringStep(0)
        if error is not None:
            raise error
        return Scored(np.full(len(inputs.passages), np.nan, np.float32), True)

    return replace(SCORERS["lexical"], score=score)


def asked(words: str, *before: Message, document: str = DOCUMENT) -> tuple[Message, ...]:
    """A question; the first one of a chat has the document attached."""
    return (*before, Message("user", words, () if before else (Attachment("valley.txt", document),)))


def answer_to(
    tokenizer: TokenizerWrapper,
    messages: Sequence[Message] | Sequence[int],
    settings: dict[str, object],
    sequence: CachedSequence | None = None,
    architecture: str = "llama",
) -> Answer:
    """An answer before its plan. `messages`: also the ids of a prompt. `sequence`: what was read before."""
    loaded = loaded_of(architecture, tokenizer, context_tokens=CONTEXT_TOKENS)
    if isinstance(messages[0], Message):
        chat: Any = messages
        prompt = render(tokenizer, chat)
    else:
        ids: Any = messages
        prompt = Prompt([*ids], "", ())
    answer = Answer(Generate("r", (), assign_all(Settings(), settings.items())), loaded, prompt)
    answer.sequence = CachedSequence(loaded.new_cache) if sequence is None else sequence
    return answer


def read(answer: Answer, **parts: Any) -> Read:
    """Plan and read to the end. `parts`: as for `Reading`."""
    reading = Reading(answer, **parts)
    planned: list[PrefillProgress | ReadingMap] = list(reading.plan())
    return Read(answer, reading, planned + list(reading.events()))
