"""Builds any registered drafter for a test, so that registration alone gives it coverage."""

from __future__ import annotations

from typing import Any

from mlx_lm.models.cache import make_prompt_cache

from core.drafting.cacheback import FrozenTable
from core.drafting.draft import Drafter
from core.drafting.ngram_mod import NgramTables
from core.drafting.registry import DrafterSpec, Resources
from core.engine.model_session import ModelProposer
from core.events import ModelInfo
from core.models.loader import LoadedModel
from core.settings import Settings, parse
from tests.core.toy import CONTEXT_TOKENS, toy_model


def build(
    spec: DrafterSpec,
    *,
    trees: bool = False,
    tables: NgramTables | None = None,
    frozen: FrozenTable | None = None,
    **values: str,
) -> Drafter:
    """`values` are settings, with a double underscore for the dot."""
    settings = Settings()
    for key, value in values.items():
        settings = parse(settings, key.replace("__", "."), value)
    proposer = ModelProposer(Toy()) if spec.needs_proposer else None
    resources = Resources(CONTEXT_TOKENS, "toy", tables or NgramTables(), trees, frozen, proposer=proposer)
    return spec.build(settings, resources)


class Toy(LoadedModel):
    """The toy llama as a draft model, without a folder."""

    def __init__(self, model: Any = None) -> None:
        self.model: Any = model or toy_model()
        self.info = ModelInfo(
            "toy", "", "toy", "toy", "llama", "float32", "", 0, 0, CONTEXT_TOKENS, 260, 2, True
        )

    def new_cache(self) -> list[Any]:
        return list(make_prompt_cache(self.model))
