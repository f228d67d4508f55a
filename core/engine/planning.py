"""Planning of an answer: which requested settings can be applied to this model on this machine.

Each setting that cannot be applied becomes a `Change`. Nothing is read or decoded here. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from core.decoding.loop import FAST, DecodingOptions, Exactness
from core.decoding.mtp import HeadProposer
from core.drafting.calibration import Calibration
from core.drafting.draft_model import Proposer
from core.drafting.ngram_mod import NgramTables
from core.drafting.predicted import PredictedDrafter
from core.drafting.registry import DrafterSpec, Resources, drafter_spec
from core.engine.generation import AnswerPlan
from core.engine.model_session import ModelProposer, ModelSession
from core.errors import DraftlightError, DraftModelError, EmptyPromptError, ModelError, PromptTooLongError
from core.events import Change, Generate, Message, ToolCall
from core.events.wire import well_formed
from core.kv.cached_sequence import CachedSequence, shared_prefix
from core.kv.mlx_lm_caches import KvQuantisation
from core.machine.exactness import exactness
from core.models.loader import LoadedModel
from core.models.mtp import NO_HEAD
from core.prefill.forecast import most_held_tokens
from core.prefill.reading import PromptText
from core.prefill.scorers.scorer import ScoringDraft
from core.settings import Settings, assign
from core.settings.declaration import check
from core.tables.memory import TableMemory

_KEEP_PRECISION = "sliding windows and recurrent states do not grow with the text and keep their precision"


class Planning:
    """Plans answers by the model of `session`; drafters learn into `memory`."""

    def __init__(self, session: ModelSession, memory: TableMemory) -> None:
        self._session = session
        self._memory = memory

    def plan(self, text: PromptText, request: Generate, requested: Sequence[Change] = ()) -> AnswerPlan:
        """The plan for `request`, with a change for each setting that cannot be applied.

        `requested`: earlier changes. Raises `RequestError` if the request cannot be met.
        """
        settings, info = request.settings, self._session.model.info
        check(settings)
        begun = text.ids[len(text.ids) - text.continued_tokens :]
        options = decoding_options(request, self._session, begun)
        if not text.ids:
            raise EmptyPromptError("The prompt is empty.", "Type a question.")
        self._session.model.check_ids(text.ids)
        context_tokens = settings.prefill.context_of(info.context_tokens)
        held_tokens, most_tokens = len(text.ids), None
        changes = [*requested]
        if held_tokens >= context_tokens:
            if not settings.prefill.reads_beyond or not text.asked:
                is_limited = context_tokens < info.context_tokens
                raise PromptTooLongError(held_tokens, context_tokens - 1, is_limited)
            # The passages that are read leave room for an answer.
            held_tokens = most_held_tokens(context_tokens, settings.sampling.max_tokens)
            most_tokens = held_tokens
            settings, refused = drafted_without_model(settings)
            changes += refused
        unsaved = () if request.isolated else self._memory.changes(settings)
        reach_tokens = min(context_tokens, held_tokens + settings.sampling.max_tokens)
        kv, why_full = self._session.quantisation(settings.kv)
        if why_full:
            changes.append(Change("kv.bits", settings.kv.bits, "off", why_full))
            settings = assign(settings, "kv.bits", "off")
        elif kv is not None and kv.entries < len(kv.groups):
            done = f"{kv.bits} in {kv.entries} of {len(kv.groups)} layers"
            changes.append(Change("kv.bits", settings.kv.bits, done, _KEEP_PRECISION))
        name, profile = settings.drafting.drafter, self._session.profile_of(kv)
        why_not = self._session.prefix_cache.current.why_no_rollback
        why_not = why_not or profile.why_not_split(reach_tokens)
        if name != "off" and why_not:
            reason = f"{info.name} cannot speculate: {why_not}"
            changes.append(Change("drafting.drafter", name, "off", reason))
            settings = assign(settings, "drafting.drafter", "off")
        spec = drafter_spec(settings.drafting.drafter)
        head = self._session.head() if spec.needs_proposer == "head" else None
        if isinstance(head, str):
            changes.append(Change("drafting.drafter", spec.name, "auto", f"{info.name}: {head}"))
            settings, head = assign(settings, "drafting.drafter", "auto"), None
            spec = drafter_spec("auto")
        verifies = spec.drafts or (options.forces and not why_not)
        mode = settings.decoding.exactness
        exact = exactness(profile.widths.want()) if verifies and mode == "exact" else FAST
        if limited := _why_not_exact(exact, held_tokens):
            why_not = limited
            if spec.drafts:
                changes.append(Change("drafting.drafter", spec.name, "off", why_not))
            settings = assign(settings, "drafting.drafter", "off")
            spec = drafter_spec("off")
        if options.grammar is not None and options.forces and why_not:
            options.grammar.drafts = False
            changes.append(Change("grammar.drafts", "true", "false", why_not))
        if spec.needs_proposer != "head":
            head = None  # exactness can have replaced the drafter
        cost = profile.cost(held_tokens) if spec.planned(settings) else None
        resources = self._resources(settings, spec, changes, request.isolated, kv, head)
        if spec.name == "auto" and cost is not None:
            asked = self._asked_by_auto(settings, changes)
            if asked is not None:
                proposals = self._session.proposals(asked, cost, isolated=request.isolated)
                resources = replace(resources, proposer=asked, proposals=proposals)
            head = asked if isinstance(asked, HeadProposer) else None
        drafter = spec.build(settings, resources)
        if options.prediction and spec.drafts:
            planned = spec.planned(settings)
            drafter = PredictedDrafter(drafter, options.prediction, planned=planned, begun=begun)
        elif options.prediction:
            given = f"{len(options.prediction):,} tokens"
            changes.append(Change("prediction", given, "not drafted from", "the drafter is off"))
        proposer = resources.proposer if isinstance(resources.proposer, ModelProposer) else None
        return AnswerPlan(
            *(settings, spec, drafter, exact, context_tokens, held_tokens, most_tokens),
            *(cost, proposer, (*changes, *unsaved), options, kv, head),
        )

    def without_reuse(self, plan: AnswerPlan, sequence: CachedSequence, text: PromptText) -> AnswerPlan:
        """Clear `sequence` if reusing it might give other logits than a cold start; adds a change."""
        reach_tokens = min(plan.context_tokens, plan.held_tokens + plan.settings.sampling.max_tokens)
        shared = sequence.shared(text.ids)
        why_not = self._session.profile_of(plan.kv).why_not_split(reach_tokens) if shared else ""
        if not why_not:
            return plan
        sequence.clear()
        change = Change("prefix cache", f"{shared:,} tokens", "none", why_not)
        return replace(plan, changes=(*plan.changes, change))

    def _resources(
        self,
        settings: Settings,
        spec: DrafterSpec,
        changes: list[Change],
        isolated: bool,
        kv: KvQuantisation | None,
        head: HeadProposer | None,
    ) -> Resources:
        info = self._session.model.info
        trees = False
        if spec.trees:
            why_not = self._trees_refused(settings, kv)
            trees = not why_not
            if why_not:
                changes.append(Change("drafting.drafter", f"{spec.name} (tree)", "(chain)", why_not))
        proposer: Proposer | None = head
        if spec.needs_proposer == "draft model":
            proposer = self._session.drafts.drafting(settings.draft_model.model)
        beforehand = self._session.beforehand
        frozen = beforehand.frozen(settings.cacheback, changes) if spec.takes_frozen else None
        return Resources(
            info.context_tokens,
            info.family,
            NgramTables() if isolated else self._memory.tables_for(settings),
            trees,
            frozen,
            beforehand.continuations(changes) if spec.name == "auto" else None,
            calibration=Calibration() if isolated else self._memory.calibration_for(settings),
            proposer=proposer,
        )

    def _asked_by_auto(self, settings: Settings, changes: list[Change]) -> Proposer | None:
        """The model that `auto` asks: the chosen draft model, else the MTP head; None if there is none."""
        if not settings.auto.model_drafts:
            return None
        if reference := settings.draft_model.model:
            try:
                return self._session.drafts.drafting(reference)
            except (DraftModelError, ModelError) as error:
                changes.append(Change("draft_model.model", reference, "none", error.message))
        if self._session.model.info.machines:
            return None
        head = self._session.head()
        if isinstance(head, HeadProposer):
            return head
        if head != NO_HEAD:
            changes.append(Change("auto.model_drafts", "on", "off", head))
        return None

    def _trees_refused(self, settings: Settings, kv: KvQuantisation | None) -> str:
        if settings.decoding.exactness != "fast":
            return f"exactness “{settings.decoding.exactness}” was measured on chains"
        return self._session.profile_of(kv).why_no_trees()

    def scoring(self, plan: AnswerPlan) -> ScoringDraft:
        reference = plan.settings.draft_model.model
        return self._session.drafts.scoring(reference, drafts=plan.proposer is not None)


def _why_not_exact(exact: Exactness, prompt_tokens: int) -> str:
    """Why exactness `exact` allows no drafts after a prompt of this length; empty if it allows them."""
    past = exact.length_limit is not None and prompt_tokens >= exact.length_limit
    return f"exactness “exact”: {exact.summary}" if past or exact.width_limit == 1 else ""


def drafted_without_model(settings: Settings) -> tuple[Settings, tuple[Change, ...]]:
    """Without a draft model that drafts, which would have to read all of a text longer than the context."""
    reason = "the text is longer than the context of a draft model"
    reference = settings.draft_model.model
    if settings.drafting.drafter == "auto" and settings.auto.model_drafts and reference:
        change = Change("draft_model.model", reference, "none", reason)
        return assign(settings, "draft_model.model", ""), (change,)
    if drafter_spec(settings.drafting.drafter).needs_proposer != "draft model":
        return settings, ()
    change = Change("drafting.drafter", settings.drafting.drafter, "auto", reason)
    return assign(settings, "drafting.drafter", "auto"), (change,)


# ---- decoding options


def decoding_options(request: Generate, session: ModelSession, begun: Sequence[int]) -> DecodingOptions:
    """The request's logit bias, grammar and prediction, compiled and tokenised for the loaded model.

    `begun`: tokens at the prompt's end that belong to the answer. Raises `GrammarError`, and `RequestError`
    for ids that the model does not have.
    """
    grammar = session.grammars.start(request.grammar) if request.grammar is not None else None
    prediction = _predicted(request.prediction, session.model) if request.prediction else ()
    options = DecodingOptions(request.logit_bias, request.top_logprobs, grammar, prediction)
    options.check(session.model.info.vocabulary)
    if grammar is not None:
        grammar.advance(begun)
    return options


def _predicted(text: str, model: LoadedModel) -> tuple[int, ...]:
    """The ids of a predicted answer, cut at the context length."""
    ids = model.tokenizer.encode(well_formed(text), add_special_tokens=False)
    return tuple(int(token) for token in ids[: model.info.context_tokens])


# ---- branches


_ANSWER = Message("assistant", "Yes.")
_QUESTION = Message("user", "Why?")


def branches(
    ids: Sequence[int],
    request: Generate,
    rendered: Callable[[Sequence[Message]], Sequence[int]],
    may_merge: Callable[[int], bool],
) -> tuple[int, ...]:
    """Lengths at which the prompts of the chat's next turns can diverge from this prompt, ascending.

    A template can render an answer in the history differently from its beginning: Qwen3.6 opens `<think>` for
    the answer and drops the thought from the history, so the next prompt diverges before `<think>`. A cache
    that cannot be truncated needs a snapshot there. The lengths are found by rendering possible
    continuations.

    `ids`: the prompt of `request`. `rendered` returns the token ids of a conversation. Continuations that the
    template refuses are skipped. `may_merge(token)`: whether a token may be another one before the real
    answer, as the space of “Assistant: ”; a branch ends before it.
    """
    found = []
    for more in _continuations(request):
        try:
            others = rendered((*request.messages, *more))
        except DraftlightError:
            continue
        length = shared_prefix(ids, others)
        found.append(length - 1 if length and may_merge(ids[length - 1]) else length)
    return tuple(sorted(set(found)))


def _continuations(request: Generate) -> Iterator[tuple[Message, ...]]:
    """An answer with the next question, and with tools a call with its result."""
    yield _ANSWER, _QUESTION
    if request.tools:
        call = ToolCall("call00001", request.tools[0].name, "{}")
        yield Message("assistant", "", tool_calls=(call,)), Message("tool", "Done.", tool_call_id=call.id)
