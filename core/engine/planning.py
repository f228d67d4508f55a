"""Planning: what can be done of what was asked, with this model on this machine, and a change for the rest.

Reads nothing and decodes nothing. Engine's thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from core.decoding.options import FAST, DecodingOptions, Exactness
from core.decoding.proposer import ModelProposer
from core.drafting.calibration import Calibration
from core.drafting.ngram_table import NgramTables
from core.drafting.predicted import PredictedDrafter
from core.drafting.registry import DrafterSpec, Resources, drafter_spec
from core.engine.generation import AnswerPlan, within_context
from core.engine.model_session import ModelSession
from core.events import Change
from core.kv.cached_sequence import CachedSequence
from core.machine.exactness import exactness
from core.prefill.reading import PromptText
from core.prefill.scorers.scorer import ScoringDraft
from core.settings import Settings, assign
from core.settings.declaration import retired_value
from core.tables.memory import TableMemory


class Planning:
    """Of answers by the model of `here`; what drafters learn is kept in `memory`."""

    def __init__(self, here: ModelSession, memory: TableMemory) -> None:
        self._here = here
        self._memory = memory

    def plan(
        self,
        prompt_tokens: int,
        settings: Settings,
        isolated: bool,
        options: DecodingOptions,
        begun: Sequence[int],
    ) -> AnswerPlan:
        """What can be done of `settings`, with a change for each part that cannot.

        `begun` is what the answer begins with at the prompt's end.
        """
        info = self._here.model.info
        context_tokens = settings.prefill.context_of(info.context_tokens)
        settings, shortened = within_context(settings, prompt_tokens, context_tokens)
        changes = [*shortened, *_retired(settings)]
        reach_tokens = prompt_tokens + settings.sampling.max_tokens
        name, profile = settings.drafting.drafter, self._here.profile
        why_not = self._here.prefix_cache.current.why_no_rollback or profile.why_not_split(reach_tokens)
        if name != "off" and why_not:
            reason = f"{info.name} cannot speculate: {why_not}"
            changes.append(Change("drafting.drafter", name, "off", reason))
            settings = assign(settings, "drafting.drafter", "off")
        spec = drafter_spec(settings.drafting.drafter)
        forces = options.grammar is not None and options.grammar.drafts
        verifies = spec.drafts or (forces and not why_not)
        mode = settings.decoding.exactness
        exact = exactness(mode, profile.widths.want()) if verifies and mode != "fast" else FAST
        if limited := _why_not_exact(exact, prompt_tokens):
            why_not = limited
            if spec.drafts:
                changes.append(Change("drafting.drafter", spec.name, "off", why_not))
            settings = assign(settings, "drafting.drafter", "off")
            spec = drafter_spec("off")
        elif exact.mode == "exact" and (removed := profile.widths.profile.in_use):
            reason = f"a block of {removed} tokens gave other bits than plain steps in an earlier answer"
            narrower = f"exact, blocks of at most {exact.width_limit} tokens"
            changes.append(Change("decoding.exactness", "exact", narrower, reason))
        if options.grammar is not None and forces and why_not:
            options.grammar.drafts = False
            changes.append(Change("grammar.drafts", "true", "false", why_not))
        resources = self._resources(settings, spec, changes, isolated)
        drafter = spec.build(settings, resources)
        if options.prediction and spec.drafts:
            planned = spec.planned(settings)
            drafter = PredictedDrafter(drafter, options.prediction, planned=planned, begun=begun)
        elif options.prediction:
            given = f"{len(options.prediction):,} tokens"
            changes.append(Change("prediction", given, "not drafted from", "the drafter is off"))
        proposer = resources.proposer if isinstance(resources.proposer, ModelProposer) else None
        cost = profile.cost(prompt_tokens) if spec.planned(settings) else None
        samples = profile.widths if exact.mode == "exact" else None
        return AnswerPlan(settings, spec, drafter, exact, cost, proposer, tuple(changes), options, samples)

    def without_reuse(self, plan: AnswerPlan, sequence: CachedSequence, text: PromptText) -> AnswerPlan:
        """Start cold where going on with `sequence` might not give what a cold start gives."""
        reach_tokens = len(text.ids) + plan.settings.sampling.max_tokens
        shared = sequence.shared(text.ids)
        why_not = self._here.profile.why_not_split(reach_tokens) if shared else ""
        if not why_not:
            return plan
        sequence.clear()
        change = Change("prefix cache", f"{shared:,} tokens", "none", why_not)
        return replace(plan, changes=(*plan.changes, change))

    def _resources(
        self, settings: Settings, spec: DrafterSpec, changes: list[Change], isolated: bool
    ) -> Resources:
        info = self._here.model.info
        trees = False
        if spec.trees:
            why_not = self._trees_refused(settings)
            trees = not why_not
            if why_not:
                changes.append(Change("drafting.drafter", f"{spec.name} (tree)", "(chain)", why_not))
        proposer = self._here.drafts.drafting(settings.draft_model.model) if spec.needs_proposer else None
        beforehand = self._here.beforehand
        frozen = beforehand.frozen(settings.cacheback, changes) if spec.takes_frozen else None
        return Resources(
            info.context_tokens,
            info.family,
            NgramTables() if isolated else self._memory.tables_for(settings),
            trees,
            frozen,
            beforehand.continuations(settings.auto, changes) if spec.name == "auto" else None,
            calibration=Calibration() if isolated else self._memory.calibration_for(settings),
            proposer=proposer,
        )

    def _trees_refused(self, settings: Settings) -> str:
        """Why trees are not verified, in words; empty if they are."""
        if settings.decoding.exactness != "fast":
            return f"exactness “{settings.decoding.exactness}” was measured on chains"
        return self._here.profile.why_no_trees()

    def scoring(self, plan: AnswerPlan) -> ScoringDraft:
        """The draft model that scores passages."""
        reference = plan.settings.draft_model.model
        return self._here.drafts.scoring(reference, drafts=plan.proposer is not None)


def _why_not_exact(exact: Exactness, prompt_tokens: int) -> str:
    """Why `exact` drafts nothing in an answer to a prompt of that length; empty if it drafts."""
    past = exact.length_limit is not None and prompt_tokens >= exact.length_limit
    return f"exactness “exact”: {exact.summary}" if past or exact.width_limit == 1 else ""


def _retired(settings: Settings) -> list[Change]:
    """Settings of earlier versions that were requested."""
    reason = "this setting of an earlier version is fixed now"
    return [
        Change(each.key, each.value, retired_value(each.key, each.value), reason) for each in settings.retired
    ]


def drafted_without_model(settings: Settings) -> tuple[Settings, tuple[Change, ...]]:
    """A draft model would have to read all of what is longer than the context."""
    if not drafter_spec(settings.drafting.drafter).needs_proposer:
        return settings, ()
    reason = "the text is longer than the context of a draft model"
    change = Change("drafting.drafter", settings.drafting.drafter, "auto", reason)
    return assign(settings, "drafting.drafter", "auto"), (change,)
