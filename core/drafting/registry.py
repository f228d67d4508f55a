"""The registry of drafters, read by the command line, benches, conformance tests and the engine.

A drafter's name is also a value of `drafting.drafter`; a test compares the two lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from core.drafting.auto import AutoDrafter
from core.drafting.cacheback import CachebackDrafter, FrozenTable
from core.drafting.draft import Drafter
from core.drafting.draft_model import DraftModelDrafter, Proposals, Proposer
from core.drafting.frequency import FrequencyDrafter
from core.drafting.gram_table import GramTable
from core.drafting.ngram_mod import NgramModDrafter, NgramTable
from core.drafting.ngram_simple import NgramSimpleDrafter
from core.drafting.shared_tables import NgramTables
from core.errors import InternalError, UnknownDrafterError
from core.events import DraftSource
from core.settings import Settings


class Resources(Struct, frozen=True):
    """Inputs for building a drafter, in addition to its settings.

    `capacity_tokens` is the model's context length and `family` the tokenizer's fingerprint. All requests
    share `tables`. `trees`: whether trees can be verified exactly. `tables`, `frozen`, `continuations`,
    `proposer` and `proposals` are None if not available.
    """

    capacity_tokens: int
    family: str
    tables: NgramTables | None = None
    trees: bool = False
    frozen: FrozenTable | None = None
    continuations: GramTable | None = None
    proposer: Proposer | None = None
    proposals: Proposals | None = None


ProposerKind = Literal["", "draft model", "head"]


class DrafterSpec(Struct, frozen=True):
    """`build` makes a drafter for one request.

    - `drafts`: False for a drafter that never drafts; the decode loop may then run ahead freely.
    - `trees`: drafts trees where they can be verified.
    - `needs_proposer`: the kind of `Resources.proposer` that it requires; empty if none.
    - `learns`: from answers, for later ones.
    - `takes_frozen`: uses a frozen table if there is one.
    - `planned`: with these settings, drafts carry calibrated confidences, so the planner decides how much is
      verified, and the gate decides by time.
    - `recycles`: uses the target's most likely ids.
    - `source`: the evidence of drafted tokens, if the draft does not state it.
    - `also_reads`: groups of settings that it uses in addition to the one with its name.
    """

    name: str
    summary: str
    build: Callable[[Settings, Resources], Drafter]
    drafts: bool = True
    trees: bool = False
    needs_proposer: ProposerKind = ""
    learns: bool = False
    takes_frozen: bool = False
    planned: Callable[[Settings], bool] = lambda settings: False
    recycles: bool = False
    source: DraftSource = "n-gram"
    also_reads: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The group of settings with its name."""
        return self.name.replace("-", "_")


def _auto(settings: Settings, resources: Resources) -> Drafter:
    return AutoDrafter(
        resources.capacity_tokens,
        tree=resources.trees,
        continuations=resources.continuations,
        memory=_memory(settings, resources) if settings.auto.remembered else None,
        own=_tables(resources).grams(resources.family) if settings.auto.remembered else None,
        proposals=resources.proposals,
    )


def _memory(settings: Settings, resources: Resources) -> NgramTable:
    """The family's shared n-gram table; the single place that sets its shape."""
    return _tables(resources).table(resources.family, settings.ngram_mod.n, settings.ngram_mod.slots)


def _tables(resources: Resources) -> NgramTables:
    if resources.tables is None:
        raise InternalError("A drafter that learns for later answers was built without tables.")
    return resources.tables


def _proposer(resources: Resources) -> Proposer:
    if resources.proposer is None:
        raise InternalError("A drafter that asks a model was built without it.")
    return resources.proposer


DRAFTERS: dict[str, DrafterSpec] = {
    spec.name: spec
    for spec in (
        DrafterSpec("off", "plain decoding", lambda settings, resources: Drafter(), drafts=False),
        DrafterSpec(
            "auto",
            "all evidence, as much of it as pays",
            _auto,
            trees=True,
            learns=True,
            planned=lambda settings: True,
            recycles=True,
            also_reads=("ngram_mod",),  # the table
        ),
        DrafterSpec(
            "ngram-simple",
            "longest recent match of the last tokens",
            lambda settings, resources: NgramSimpleDrafter(settings.ngram_simple, resources.capacity_tokens),
        ),
        DrafterSpec(
            "ngram-mod",
            "rolling hash into a table shared by all chats",
            lambda settings, resources: NgramModDrafter(settings.ngram_mod, _memory(settings, resources)),
            learns=True,
            source="table",
        ),
        DrafterSpec(
            "frequency",
            "most frequent continuation, longest context first",
            lambda settings, resources: FrequencyDrafter(settings.frequency),
        ),
        DrafterSpec(
            "cacheback",
            "tree of recent continuations from LRU tables",
            lambda settings, resources: CachebackDrafter(
                settings.cacheback, resources.frozen, tree=resources.trees
            ),
            trees=True,
            takes_frozen=True,
            planned=lambda settings: settings.cacheback.tree == "planned",
        ),
        DrafterSpec(
            "draft-model",
            "a smaller model of the family",
            lambda settings, resources: DraftModelDrafter(settings.draft_model, _proposer(resources)),
            needs_proposer="draft model",
            source="draft model",
        ),
        DrafterSpec(
            "mtp",
            "a head trained for the model",
            lambda settings, resources: DraftModelDrafter(settings.mtp, _proposer(resources)),
            needs_proposer="head",
            source="head",
        ),
    )
}


def drafter_spec(name: str) -> DrafterSpec:
    """The spec with this name. Raises `UnknownDrafterError` that lists the valid names."""
    try:
        return DRAFTERS[name]
    except KeyError:
        raise UnknownDrafterError(
            f"Unknown drafter “{name}”.", f"Choose one of {', '.join(DRAFTERS)}."
        ) from None
