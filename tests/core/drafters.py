"""Builds any registered drafter for a test, so that registration alone gives it coverage, and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlx_lm.models.cache import make_prompt_cache

from core.decoding.answer import Answer
from core.drafting.cacheback import FrozenTable
from core.drafting.draft import Drafter
from core.drafting.registry import DrafterSpec, Resources
from core.drafting.shared_tables import NgramTables
from core.engine.model_session import ModelProposer
from core.events import Generate, ModelInfo
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.prefill.read import read_prompt
from core.prompt import Prompt
from core.settings import Settings, assign, parse_all
from core.settings.request import Sampling
from tests.core.toy import CONTEXT_TOKENS, toy_model, toy_sequence


def build(
    spec: DrafterSpec,
    *,
    trees: bool = False,
    tables: NgramTables | None = None,
    frozen: FrozenTable | None = None,
    **values: str,
) -> Drafter:
    """`values` are settings, with a double underscore for the dot."""
    settings = parse_all(Settings(), [(key.replace("__", "."), value) for key, value in values.items()])
    proposer = ModelProposer(Toy()) if spec.needs_proposer else None
    resources = Resources(CONTEXT_TOKENS, "toy", tables or NgramTables(), trees, frozen, proposer=proposer)
    return spec.build(settings, resources)


class Toy(LoadedModel):
    """The toy llama as a draft model, without a folder."""

    def __init__(self, model: Any = None, vocabulary: int = 260) -> None:
        self.model: Any = model or toy_model()
        self.eos = frozenset()
        self.info = ModelInfo(
            "toy", "", "toy", "toy", "llama", "float32", "", 0, 0, CONTEXT_TOKENS, vocabulary, 2, True
        )

    def new_cache(self) -> list[Any]:
        return list(make_prompt_cache(self.model))


def answer_of(
    model: Any,
    prompt: Sequence[int],
    drafter: Drafter,
    sampling: Sampling | None = None,
    *,
    drafts: str = "ngram-simple",
    vocabulary: int = 260,
    sequence: CachedSequence | None = None,
    **request: Any,
) -> Answer:
    """An answer at the start of decoding: `prompt` is read, but for its last id, into an empty `sequence`.

    `drafter` drafts in place of the one named `drafts`. `request`: fields of `Generate`.
    """
    sequence = toy_sequence(model) if sequence is None else sequence
    if not sequence.tokens:
        for _ in read_prompt(model, sequence, prompt, chunk_tokens=16):
            pass
    drafter.begin(prompt)
    settings = assign(Settings(sampling=sampling or Sampling()), "drafting.drafter", drafts)
    asked = Generate("", (), settings, **request)
    answer = Answer(asked, Toy(model, vocabulary), Prompt([*prompt], "", ()))
    answer.sequence, answer.drafter = sequence, drafter
    return answer
