"""Plan of an answer: rules that decide which requested settings apply to this model on this machine.

Each rule fills in the answer and downgrades what cannot be applied; `RULES` states their order. Nothing is
read or decoded here. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite

from core.decoding.answer import Answer
from core.decoding.planner import Planner
from core.drafting.cacheback import FrozenTable
from core.drafting.draft_model import Proposals
from core.drafting.gate import Gate, PricedGate
from core.drafting.gram_table import GramTable
from core.drafting.predicted import PredictedDrafter
from core.drafting.registry import Resources
from core.drafting.shared_tables import NgramTables
from core.engine.model_session import ModelSession
from core.errors import (
    DraftlightError,
    DraftModelError,
    EmptyPromptError,
    ModelError,
    PromptTooLongError,
    RequestError,
)
from core.events import Generate, Message, ToolCall
from core.events.wire import well_formed
from core.heads.head_loader import NO_HEAD
from core.kv.cached_sequence import shared_prefix
from core.machine.exactness import WIDTHS, exactness
from core.machine.width_cost import LiveCost
from core.prefill.forecast import most_held_tokens
from core.settings.declaration import check

_KEEP_PRECISION = "sliding windows and recurrent states do not grow with the text and keep their precision"


def plan(answer: Answer, session: ModelSession) -> None:
    """Decides all of `answer` but the reading. Raises `RequestError` if the request cannot be met."""
    for rule in RULES:
        rule(answer, session)


def compile_options(answer: Answer, session: ModelSession) -> None:
    """Grammar and prediction, compiled and tokenised for the model. Raises `GrammarError`, `RequestError`."""
    request, model = answer.request, answer.model
    check(answer.settings)
    if request.grammar is not None:
        answer.grammar = session.grammars.start(request.grammar)
        answer.forces = request.grammar.drafts
    if request.prediction:
        ids = model.tokenizer.encode(well_formed(request.prediction), add_special_tokens=False)
        answer.prediction = [int(token) for token in ids[: model.info.context_tokens]]
    _check_bias(request, model.info.vocabulary)
    if answer.grammar is not None:
        answer.grammar.advance(answer.begun)
    if not answer.ids:
        raise EmptyPromptError("The prompt is empty.", "Type a question.")
    # The answer begins with a pass over the last token, which must not be a row of an image.
    model.check_ids(answer.ids if answer.sight is None else [*answer.text_ids, answer.ids[-1]])


def _check_bias(request: Generate, vocabulary: int) -> None:
    """Raises `RequestError` if a model with `vocabulary` ids cannot satisfy the request."""
    bias = request.logit_bias
    strange = next((token for token in bias if not 0 <= token < vocabulary), None)
    if strange is not None:
        raise RequestError(
            f"logit_bias names the token id {strange:,}; the model has 0 to {vocabulary - 1:,}.",
            "Remove the id, or choose a model that has it.",
        )
    endless = next((token for token, value in bias.items() if not isfinite(value)), None)
    if endless is not None:
        raise RequestError(
            f"logit_bias of token id {endless:,} is {bias[endless]}, not a finite number.",
            "Use −100 to ban a token and 100 to force it.",
        )
    if request.top_logprobs is not None and request.top_logprobs < 0:
        raise RequestError(
            f"top_logprobs is {request.top_logprobs}; it must be at least 0.", "Omit it for no logprobs."
        )


def fit_context(answer: Answer, session: ModelSession) -> None:
    """A prompt longer than the context is read in part."""
    settings, context_tokens = answer.settings, answer.context_tokens
    if len(answer.ids) < context_tokens:
        return
    if not settings.prefill.reads_beyond or not answer.prompt.asked:
        is_limited = context_tokens < answer.model.info.context_tokens
        raise PromptTooLongError(len(answer.ids), context_tokens - 1, is_limited)
    # The passages that are read leave room for an answer.
    answer.most_tokens = most_held_tokens(context_tokens, settings.sampling.max_tokens)


def choose_cache(answer: Answer, session: ModelSession) -> None:
    """How the cache is quantised."""
    bits = answer.settings.kv.bits
    kv, why_not = session.quantisation(answer.settings.kv)
    if kv is not None and answer.sight is not None:
        kv, why_not = None, "a chat with images keeps its cache in full precision"
    answer.kv = kv
    if why_not:
        answer.downgrade("kv.bits", "off", why_not)
    elif kv is not None and kv.entries < len(kv.groups):
        used = f"{kv.bits} in {kv.entries} of {len(kv.groups)} layers"
        answer.downgrade("kv.bits", used, _KEEP_PRECISION, asked=bits)


def require_rollback(answer: Answer, session: ModelSession) -> None:
    """Without exact rollback nothing is drafted."""
    answer.why_plain = session.prefix_cache.current.why_no_rollback or session.profile_of(
        answer.kv
    ).why_not_split(answer.reach_tokens)
    if answer.why_plain and answer.spec.drafts:
        reason = f"{answer.model.info.name} cannot speculate: {answer.why_plain}"
        answer.downgrade("drafting.drafter", "off", reason)


def choose_exactness(answer: Answer, session: ModelSession) -> None:
    """`exact` limits the width of blocks and the context, perhaps to no drafts at all."""
    verifies = answer.spec.drafts or (answer.forces and not answer.why_plain)
    if not verifies or answer.settings.decoding.exactness != "exact":
        return
    answer.exactness = exact = exactness(session.profile_of(answer.kv).widths.want())
    if exact.width_limit == 1 or answer.planned_tokens >= (exact.length_limit or inf):
        answer.why_plain = f"exactness “exact”: {exact.summary}"
        if answer.spec.drafts:
            answer.downgrade("drafting.drafter", "off", answer.why_plain)
    elif exact.width_limit != WIDTHS[-1]:
        used = f"exact, {exact.width_limit} tokens at a time"
        answer.downgrade("decoding.exactness", used, exact.summary, asked="exact")


def choose_draft_model(answer: Answer, session: ModelSession) -> None:
    """A draft model reads all of the text before it drafts; where it cannot, `auto` drafts without it."""
    chosen, required = answer.settings.draft_model.model, answer.spec.needs_proposer == "draft model"
    if answer.request.chat:  # other requests, as for a title, come with settings of their own
        session.drafts.keep_for(answer.request.settings)
    if not (required or (answer.spec.name == "auto" and chosen)):
        return
    why_not = "a draft model reads all of a text, and this one is longer than the context"
    try:
        if answer.sight is not None:
            why_not = "a draft model that does not see is not asked while the chat holds images"
        elif answer.most_tokens is None:
            answer.proposer = session.drafts.drafting(chosen)
            why_not = answer.proposer.loaded.why_not_read(answer.ids)
    except (DraftModelError, ModelError) as error:
        if required:
            raise
        why_not = error.message
    if why_not:
        answer.proposer = None
        if required:
            answer.downgrade("drafting.drafter", "auto", why_not)
        answer.downgrade("draft_model.model", "", why_not)


def choose_head(answer: Answer, session: ModelSession) -> None:
    """The model's head drafts for `mtp`, and for `auto` without a draft model."""
    required, machines = answer.spec.needs_proposer == "head", answer.model.info.machines
    asked = answer.spec.name == "auto" and not machines
    if not required and (not asked or answer.proposer is not None):
        return
    head = session.head()
    if not isinstance(head, str):
        answer.head = head
    elif required:
        answer.downgrade("drafting.drafter", "auto", f"{answer.model.info.name}: {head}")
    elif head != NO_HEAD:
        answer.downgrade("drafting.drafter", "auto without the model’s head", head, asked="auto")


def draft_grammar(answer: Answer, session: ModelSession) -> None:
    """Forced tokens are drafted where drafts are."""
    if answer.forces and answer.why_plain:
        answer.forces = False
        answer.downgrade("grammar.drafts", "false", answer.why_plain, asked="true")


def build_drafter(answer: Answer, session: ModelSession) -> None:
    """The drafter with its resources, gate and planner."""
    spec, settings, request = answer.spec, answer.settings, answer.request
    cost: LiveCost | None = None
    if spec.drafts:
        free = request.grammar is None or request.grammar.kind == "tool_calls"
        runs_ahead = free and not answer.model.info.machines
        cost = session.profile_of(answer.kv).cost(answer.planned_tokens, runs_ahead=runs_ahead)
    answer.cost = cost
    if cost is not None and spec.planned(settings):
        answer.planner = Planner(cost, cost.needs_plain)
        answer.gate = PricedGate(settings.gate, cost.is_priced)
    else:
        answer.gate = Gate(settings.gate)
    trees = spec.trees and _allows_trees(answer, session)
    proposer = answer.proposer or answer.head
    proposals: Proposals | None = None
    if spec.name == "auto" and cost is not None and proposer is not None:
        proposals = session.proposals(proposer, cost, isolated=request.isolated)
    frozen = _frozen(answer, session) if spec.takes_frozen else None
    continuations = _continuations_of(answer, session) if spec.name == "auto" else None
    tables = None
    if spec.learns:
        tables = NgramTables() if request.isolated else session.memory.tables_for(settings)
    info = answer.model.info
    answer.drafter = spec.build(
        settings,
        Resources(
            info.context_tokens,
            info.family,
            tables,
            trees=trees,
            frozen=frozen,
            continuations=continuations,
            proposer=proposer,
            proposals=proposals,
        ),
    )


def _allows_trees(answer: Answer, session: ModelSession) -> bool:
    mode = answer.settings.decoding.exactness
    why_not = session.profile_of(answer.kv).why_no_trees()
    if mode != "fast":
        why_not = f"exactness “{mode}” was measured on chains"
    if why_not:
        answer.downgrade("drafting.drafter", "(chain)", why_not, asked=f"{answer.spec.name} (tree)")
    return not why_not


def _frozen(answer: Answer, session: ModelSession) -> FrozenTable | None:
    cacheback = answer.settings.cacheback
    if cacheback.mode == "dynamic":
        return None
    table, notes = session.beforehand.frozen(cacheback)
    without = "dynamic" if cacheback.mode == "dual" else "none"
    for note in notes:
        answer.downgrade("cacheback.mode", cacheback.mode if table else without, note, asked=cacheback.mode)
    return table


def _continuations_of(answer: Answer, session: ModelSession) -> GramTable | None:
    table, notes = session.beforehand.continuations()
    for note in notes:
        answer.downgrade("drafting.drafter", "auto", note, asked="auto")
    return table


def draft_prediction(answer: Answer, session: ModelSession) -> None:
    """A predicted answer comes before what the drafter finds."""
    if not answer.prediction:
        return
    if answer.spec.drafts:
        planned = answer.planner is not None
        answer.drafter = PredictedDrafter(answer.drafter, answer.prediction, planned=planned)
    else:
        given = f"{len(answer.prediction):,} tokens"
        answer.downgrade("prediction", "not drafted from", "the drafter is off", asked=given)


def tell_unsaved(answer: Answer, session: ModelSession) -> None:
    """Record a change if tables learned from this answer cannot be saved."""
    if not answer.spec.learns or answer.request.isolated:
        return
    if why_not := session.memory.why_not_saved(answer.settings):
        answer.downgrade("tables.learn", "on, but not saved", why_not, asked="on")


RULES: tuple[Callable[[Answer, ModelSession], None], ...] = (
    compile_options,
    fit_context,
    choose_cache,
    require_rollback,
    choose_exactness,
    choose_draft_model,
    choose_head,
    draft_grammar,
    build_drafter,
    draft_prediction,
    tell_unsaved,
)


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
