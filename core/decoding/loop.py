"""The decode loop: propose, verify in one forward pass, accept, roll back.

One step is one forward pass of the target over a block: the pending tokens, which are known but not in the
cache yet, and the draft. It emits the accepted path and one token of the target's own. A step without a draft
emits that token only.

Usually the newest token alone is pending. On recurrent models a partly accepted block leaves the cache as it
was, and its accepted tokens stay pending: they are folded into the next block, so partial acceptance costs
rows but never an extra forward pass.

Steps without a draft are pipelined like mlx-lm's `generate_step`: the next forward pass is built on the token
that is still being computed, so the interpreter's work overlaps with the model's. Such a pass commits the
next step to no draft, so it is started only if none is expected: always for a drafter that never drafts,
otherwise after `_EMPTY_DRAFTS_TO_PIPELINE` empty drafts, or at once in a rest where asking the drafter takes
long, and never if other machines need the ids first (`CachedSequence.is_mirrored`). With a grammar only the
forward pass runs ahead: its mask depends on the token before, so it is computed once that is there, while the
pass is running. As forced tokens are worth more than running ahead, it begins after
`_FREE_STEPS_TO_PIPELINE` steps that had none, as in the text between the calls of tools.

Between its ids and the next pass the device waits. So the next pass is started before a step's tokens are
handed out: showing them, the statistics and whatever else is done with them happens while the device
computes. An iteration that is closed takes the started block back, as if it had not been. Not where a grammar
forces tokens, and not with a draft model or a head, whose drafting changes what cannot be taken back, nor if
other machines need the ids.

Tokens that a grammar forces are drafted as a chain before the drafter's own draft. They are certain, so the
drafter observes them before the forward pass and drafts what follows; its feedback, the gate and the planner
treat them as known tokens.

Invariant after every step: sequence plus pending tokens equal the prompt and all emitted tokens; while a
plain forward pass is running, the sequence holds them all. While a block is running, its rows are in the
cache, too, and closing the iteration removes them.

Logits that are not numbers end the iteration with `BrokenLogitsError`, after the tokens before them. Only
rows that the output depends on count; rows after a rejected draft are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any

import mlx.core as mx
from msgspec import Struct

from core.decoding.answer import Answer, Pipeline
from core.decoding.early_start import EarlyStart
from core.decoding.planner import walk
from core.decoding.sampling import (
    NO_CHOICE,
    Choices,
    Logprob,
    RowHistory,
    RowInputs,
    Sampler,
    logprobs,
    top_ids,
)
from core.decoding.tree import tree_pass
from core.drafting.draft import EMPTY, Draft, RejectedRow, sanitise
from core.drafting.gate import Gate, PricedGate
from core.errors import BrokenLogitsError, GrammarError, RequestError
from core.events import DraftSource
from core.kv.verify_block import VerifyBlock
from core.models.parts import Rotation, rotations

# Consecutive empty drafts before the loop runs ahead.
_EMPTY_DRAFTS_TO_PIPELINE = 2
# Consecutive steps without forced tokens before the loop runs ahead where those are drafted: a run of forced
# tokens that begins behind such a pass costs a step more.
_FREE_STEPS_TO_PIPELINE = 16
# Plain steps that asking must take for the loop to run ahead at the first step of a rest. Then the step after
# the rest is plain, too. In a simulation of the pipeline over the replay's streams that was 3% faster where
# asking takes 1 plain step; it was not timed on a device.
_ASKING_TO_PIPELINE = 0.1
# Rankings after rejected guesses that are computed, deepest first: each costs a pass over a row of logits.
_REJECTED_ROWS = 2
# Most rejected guesses of a step that are reported.
_SHOWN_GUESSES = 8
# Folded tokens widen every block; beyond this many, a step without a draft reads them.
_FOLD_LIMIT_TOKENS = 8
# Steps between clearing MLX's buffer cache, as in mlx-lm.
_CLEAR_EVERY_STEPS = 256


class Step(Struct):
    """One forward pass, filled in as it is drafted, started, read and learned from. Complete once yielded.

    - `tokens`: the `accepted` drafted ones, then the target's own, if any. `logprobs`: of each, if requested.
    - `drafted`: verified nodes; `tested`: nodes that the walk reached.
    - `draft_s`: time of drafting, and of the drafter's learning from the outcome.
    - `width`: block width, including pending tokens; `tree`: it was a tree.
    - `forced`: accepted tokens, the first ones, that were drafted because the grammar allows no others.
    - `proposal_cost`: time of a model's guesses, part of `draft_s`, in plain steps; 0 without a proposal.
    - `worth`: expected value of the draft for the planner; None if the drafter was not called.
    - `sources`: of the accepted tokens; empty if all came from the drafter's only source.
    - `rejected`: rejected guesses after the accepted path: the end of a chain, or each branch's first token.
    - `waited_s`: time of waiting for the device. `pipeline`: how it ran ahead.
    - `took_s`: time since the end of the step before: this one's drafting, building and waiting, and the use
      of its tokens meanwhile. All steps together take the iteration's time.
    - `host_s`: time from the ids of the step before until the first part of this one's pass was started: the
      device has nothing to do in it. 0 if the pass was started before.
    """

    tokens: tuple[int, ...] = ()
    drafted: int = 0
    accepted: int = 0
    tested: int = 0
    draft_s: float = 0.0
    width: int = 1
    tree: bool = False
    logprobs: tuple[Logprob, ...] = ()
    forced: int = 0
    proposal_cost: float = 0.0
    worth: float | None = None
    sources: tuple[DraftSource, ...] = ()
    rejected: tuple[tuple[int, ...], ...] = ()
    waited_s: float = 0.0
    pipeline: Pipeline = "single"
    took_s: float = 0.0
    host_s: float = 0.0


class _Pass(Struct, frozen=True):
    """The pass of a step that was started: its `choices`, and the block that verifies `draft`.

    `block`: None for a plain pass, whose `draft` is empty, and which may be running since the step before.
    """

    choices: Choices
    draft: Draft = EMPTY
    block: VerifyBlock | None = None


class _Unmasked(Struct, frozen=True):
    """A forward pass that runs ahead with a grammar: its choice waits for the mask.

    `logits`: [1, vocabulary]. `inputs`: those of its row, without a mask.
    """

    logits: mx.array
    inputs: RowInputs


class DecodeLoop:
    """Continues the sequence of `answer`, which holds all of its prompt except the last token.

    The grammar masks each row; forced tokens are drafted even if the drafter never drafts. The head receives
    the hidden state of every emitted token that was read. Worker's main thread.
    """

    def __init__(self, answer: Answer) -> None:
        spec, sequence = answer.spec, answer.sequence
        self._answer = answer
        self._model: Any = answer.model.model
        self._sequence = sequence
        self._pending = answer.ids[-1:]
        self._drafter = answer.drafter
        self._sampler = Sampler(answer.settings.sampling, answer.request.logit_bias)
        self._history = RowHistory(sequence, self._sampler, answer.continued_tokens)
        self._drafts = spec.drafts and not sequence.why_no_rollback
        self._grammar = answer.grammar
        self._forces = answer.forces and not sequence.why_no_rollback
        self._guessed = EMPTY  # the drafter's own part of the current draft
        self._recycles = spec.recycles
        self._tops: list[list[int]] = []
        self._rejected: list[RejectedRow] = []
        self._states = answer.head
        self._hidden = mx.array(0.0)  # of the last forward pass, [rows, size], if requested
        self._rotations: list[Rotation] | None = None
        self._running: Choices | _Unmasked | None = None
        self._step = Step()  # the current one, and its pass while that is not read
        self._pass: _Pass | None = None
        self._begins_early = self._states is None and answer.proposer is None and not sequence.is_mirrored
        # When the last ids were there, the first work after them was started (None: not yet), and the last
        # step ended.
        self._ids_s = self._ended_s = 0.0
        self._started_s: float | None = None
        self._top_logprobs = answer.request.top_logprobs
        # Logits of the last forward pass and of the last step's tokens, kept only for logprobs; those of the
        # last forward pass as float32, for rankings, which are computed with the choices.
        self._logits = mx.array(0.0)
        self._ranked: tuple[mx.array, ...] = ()
        self._step_logits = mx.array(0.0)
        self._empty_drafts = 0
        self._free_steps = 0  # since the last forced token
        self._steps = 0
        # In the current step: whether the gate pauses drafting, and whether the drafter is called.
        self._rests = False
        self._asks = True
        self._left_pipeline = False  # in the step before

    def steps(self, max_tokens: int) -> Generator[Step, None, None]:
        """Yields steps until `max_tokens` are emitted; never more. Close it to stop early, before anything
        else is done with the sequence.

        The caller ends the iteration at a stop token, which is always the last of its step. Raises
        `BrokenLogitsError`; the cache is then invalid.
        """
        left, eos = max_tokens, self._answer.model.eos
        self._ids_s = self._ended_s = time.perf_counter()
        try:
            while left > 0:
                if self._pass is None:
                    self._begin(left)
                step = self._finish(left)
                if step.tokens[-1] == NO_CHOICE:
                    step.tokens = step.tokens[:-1]
                    if step.tokens:
                        self._add_logprobs(step)
                        yield step
                    raise self._no_choice_error(step)
                left -= len(step.tokens)
                self._steps += 1
                if self._steps % _CLEAR_EVERY_STEPS == 0:
                    mx.clear_cache()
                self._add_logprobs(step)
                # Behind a pass that runs ahead the device has work.
                can_begin = self._begins_early and not self._forced and self._running is None
                if can_begin and left > 0 and step.tokens[-1] not in eos:
                    self._begin(left)
                yield step
        finally:
            self._take_back()

    def _take_back(self) -> None:
        """Removes the rows of a block that was started and not read."""
        if self._pass is not None and self._pass.block is not None:
            self._pass.block.keep(self._step.width, ())
        self._pass = None

    def _no_choice_error(self, step: Step) -> RequestError:
        if self._grammar is None:
            return BrokenLogitsError()
        self._grammar.advance(step.tokens)
        failure = self._grammar.failure
        if not failure:
            return BrokenLogitsError()
        return GrammarError(
            f"The answer ends here: its grammar reached a limit ({failure}).", "Use a simpler schema."
        )

    def _add_logprobs(self, step: Step) -> None:
        if self._top_logprobs is not None:
            rows = self._step_logits[: len(step.tokens)]
            step.logprobs = logprobs(rows, step.tokens, self._top_logprobs)

    # ---- a step: drafted and started, read, learned from

    def _begin(self, left: int) -> None:
        """Drafts, and starts the pass of the next step."""
        started = time.perf_counter()
        step = self._step = Step()
        self._started_s = None
        self._free_steps = 0 if self._forced else self._free_steps + 1
        gate, asked_before = self._answer.gate, self._asks
        self._rests = gate is not None and not gate.should_draft()
        # After a rest one forward pass has been started already, and no draft can follow it.
        self._asks = not self._rests and (asked_before or self._running is None)
        # One token is reserved for the target's own, so an accepted draft never exceeds the limit.
        draft = self._propose(left - 1)
        step.draft_s = time.perf_counter() - started
        pending = self._pending
        step.width = max(1, len(pending))
        if isinstance(self._running, _Unmasked):
            rows = self._with_mask(self._running.inputs, EMPTY, self._running.logits)
            begun = _Pass(self._sampler.choose(self._running.logits, rows))
            # Not together with the pass that follows: arrays that are started together are ready together.
            self._has_work(self._ids_s)  # that of the pass
            self._start(begun.choices)
        elif self._running is not None:
            begun = _Pass(self._running)
        elif len(draft) and len(pending) <= _FOLD_LIMIT_TOKENS:
            step.drafted, step.tree = len(draft), not draft.is_chain
            step.width = len(pending) + len(draft)
            block = VerifyBlock(self._sequence.cache)
            logits, inputs = self._rows(pending, draft)
            begun = _Pass(self._sampler.choose(logits, inputs), draft, block)
            self._start(begun.choices)
        else:
            begun = _Pass(self._forward(pending))
            self._start(begun.choices)
            self._sequence.append(pending)
            self._pending = []
        step.host_s = 0.0 if self._started_s is None else self._started_s - self._ids_s
        self._pass = begun

    def _finish(self, left: int) -> Step:
        """Reads the step that was begun, and learns from it."""
        step, begun = self._step, self._pass
        assert begun is not None
        self._pass = None
        if begun.block is None:
            self._run(step, begun.choices, left)
        else:
            self._verify(step, begun, begun.block)
        if step.tokens[-1] == NO_CHOICE:
            return step
        started = time.perf_counter()
        gate = self._answer.gate
        self._drafter.observe(step.tokens[step.forced :])
        if self._recycles and self._asks:
            self._drafter.observe_top(self._tops, self._rejected)
        planner = self._answer.planner
        if planner is not None and self._asks:
            planner.record(step.width, step.tree, len(step.tokens), step.proposal_cost)
        elif planner is not None:
            planner.rested(len(step.tokens))
        if self._grammar is not None:
            self._grammar.advance(step.tokens)
        priced = isinstance(gate, PricedGate) and gate.decides and left > len(step.tokens)
        sure = self._drafter.sure() if priced else 0.0  # kept for a draft at the next step
        ended = time.perf_counter()
        if isinstance(gate, PricedGate) and priced:
            gate.record(step.worth, sure)
        elif isinstance(gate, Gate) and (self._rests or self._asks):
            gate.record(1 + step.drafted - step.forced, step.accepted - step.forced)
        self._left_pipeline = step.pipeline == "leaves"
        step.took_s, self._ended_s = ended - self._ended_s, ended
        step.draft_s += ended - started
        if self._answer.cost is not None:
            # T is the time without a model's guesses.
            block_s = step.took_s - (step.draft_s if step.proposal_cost else 0.0)
            self._answer.cost.step(step.width, block_s, tree=step.tree, pipeline=step.pipeline)
        return step

    def _propose(self, budget: int) -> Draft:
        """Forced tokens, which the drafter has observed then, and its own draft."""
        self._guessed = EMPTY
        if self._answer.exactness.width_limit is not None:
            budget = min(budget, self._answer.exactness.width_limit - len(self._pending))
        if self._answer.exactness.length_limit is not None:
            held = len(self._sequence.tokens) + len(self._pending)
            budget = min(budget, self._answer.exactness.length_limit - held)
        if budget < 1:
            return EMPTY
        grammar, forced = self._grammar, tuple[int, ...]()
        if self._running is None and len(self._pending) <= _FOLD_LIMIT_TOKENS:
            forced = self._forced[:budget]
        if forced:
            self._drafter.observe(forced)  # now, because it is certain
        self._step.forced = len(forced)
        # A draft can follow all forced tokens only.
        complete = grammar is None or grammar.forced_count == len(forced)
        if self._drafts and len(forced) < budget and complete:
            self._guessed = self._guess(budget - len(forced), forced)
        return _concatenated(forced, self._guessed)

    @property
    def _forced(self) -> tuple[int, ...]:
        """The forced tokens that follow and can be drafted."""
        return self._grammar.forced if self._forces and self._grammar is not None else ()

    def _guess(self, budget: int, forced: tuple[int, ...]) -> Draft:
        """The drafter's draft after the forced tokens."""
        if not self._asks:
            self._empty_drafts = self._empty_drafts + 1 if self._rests else 0
            return EMPTY
        step, planner, known = self._step, self._answer.planner, len(self._pending) + len(forced)
        if planner is not None:
            self._drafter.least_probability = planner.least_probabilities(known)
        draft = sanitise(
            self._drafter.draft(budget), vocabulary=self._answer.model.info.vocabulary, budget=budget
        )
        step.proposal_cost = self._drafter.proposal_cost
        if self._grammar is not None:
            draft = self._grammar.filter_draft(draft, forced)
        if planner is not None:
            draft = planner.shape(draft, budget, known)
            step.worth = planner.worth(draft, known) - step.proposal_cost
            if self._left_pipeline:
                step.worth -= planner.asking  # entering it again takes as long
        self._empty_drafts = 0 if len(draft) else self._empty_drafts + 1
        return draft

    def _pulled(self, choices: Choices, *others: mx.array) -> list[int]:
        started = time.perf_counter()
        ids = choices.pull(*others)
        self._ids_s = time.perf_counter()
        self._step.waited_s += self._ids_s - started
        return ids

    def _start(self, choices: Choices) -> None:
        """Starts the last forward pass. This waits, too, while the device's queue is full, as a CPU's often
        is.
        """
        started = time.perf_counter()
        self._has_work(started)
        choices.start(*self._ranked)
        self._step.waited_s += time.perf_counter() - started

    def _has_work(self, started_s: float | None) -> None:
        """The device got a part of a pass at `started_s`; None: it did not."""
        if self._started_s is None:
            self._started_s = started_s

    def _verify(self, step: Step, begun: _Pass, block: VerifyBlock) -> None:
        sequence, pending, draft = self._sequence, self._pending, begun.draft
        lead = len(pending)
        walked = walk(draft, self._pulled(begun.choices, *self._ranked), self._answer.model.eos)
        if self._recycles:
            self._recycle(draft, walked.path, step.forced)
        if self._top_logprobs is not None:
            self._step_logits = self._logits[mx.array([0, *(node + 1 for node in walked.path)])]
        accepted = [draft.tokens[node] for node in walked.path]
        rows = [*range(lead), *(lead + node for node in walked.path)]
        known = [*pending, *accepted]
        if self._states is not None:
            chain = rows[-1] == len(rows) - 1
            self._hand_out(known, self._hidden[: len(rows)] if chain else self._hidden[mx.array(rows)])
        kept = rows if block.keep(step.width, rows) else []
        sequence.append(known[: len(kept)])
        self._pending = [*known[len(kept) :], walked.last]
        if len(self._guessed):
            self._drafter.feedback(self._guessed, max(0, len(accepted) - step.forced))
        step.tokens, step.accepted, step.tested = (*accepted, walked.last), len(accepted), walked.tested
        if draft.sources:
            step.sources = tuple(draft.sources[node] for node in walked.path)
        step.rejected = _rejected(draft, walked.path)

    def _hand_out(self, tokens: Sequence[int], hidden: mx.array, start: int | None = None) -> None:
        """Passes on the hidden states of known tokens, from position `start`; None: the sequence's end."""
        assert self._states is not None
        first = len(self._sequence.tokens) if start is None else start
        self._states.receive(range(first, first + len(tokens)), tokens, hidden)

    def _recycle(self, draft: Draft, path: Sequence[int], forced: int) -> None:
        """Ranks ids along the accepted path after `forced` tokens, and after the rejected guesses nearest to
        it.
        """
        emitted = [0, *(node + 1 for node in path)][forced:]
        reached = {-1, *path}
        rejected = [n for n, parent in enumerate(draft.parents) if parent in reached and n not in reached]
        rejected = rejected[-_REJECTED_ROWS:]
        ranked = top_ids(self._ranked[0], [*emitted, *(node + 1 for node in rejected)])
        self._tops = ranked[: len(emitted)]
        self._rejected = [(draft.tokens[node], row) for node, row in zip(rejected, ranked[len(emitted) :])]

    def _run(self, step: Step, running: Choices, left: int) -> None:
        sequence, was_ahead = self._sequence, self._running is not None
        self._step_logits, ranked = self._logits, self._ranked
        if self._states is not None:
            read = sequence.tokens[len(sequence.tokens) - len(self._hidden) :]
            self._hand_out(read, self._hidden, len(sequence.tokens) - len(read))
        ahead: Choices | _Unmasked | None = None
        if left > 1 and not sequence.is_mirrored and self._expects_no_draft():
            ahead = self._run_ahead(running)
        (token,) = self._pulled(running, *ranked)
        if self._recycles and self._asks:
            self._tops, self._rejected = top_ids(ranked[0], [0]), []
        if ahead is None:
            self._pending = [token]
        else:
            sequence.append([token])
        self._running = ahead
        step.tokens = (token,)
        kinds: dict[tuple[bool, bool], Pipeline]
        kinds = {(False, True): "enters", (True, True): "ahead", (True, False): "leaves"}
        step.pipeline = kinds.get((was_ahead, ahead is not None), "single")

    def _expects_no_draft(self) -> bool:
        """Whether the next step will hardly have a draft."""
        if self._forces and self._free_steps <= _FREE_STEPS_TO_PIPELINE:
            return False
        planner = self._answer.planner
        if self._rests and planner is not None and planner.asking >= _ASKING_TO_PIPELINE:
            return True
        return not self._drafts or self._empty_drafts >= _EMPTY_DRAFTS_TO_PIPELINE

    def _forward(self, lead: Sequence[int]) -> Choices:
        """The target's choices after known tokens; lazy."""
        return self._sampler.choose(*self._rows(lead, EMPTY))

    def _run_ahead(self, running: Choices) -> Choices | _Unmasked:
        """Starts the pass over the token that `running` is computing."""
        logits, rows = self._rows([], EMPTY, running.ids)
        if self._grammar is not None:
            return _Unmasked(logits, rows)
        ahead = self._sampler.choose(logits, rows)
        self._start(ahead)
        return ahead

    def _with_mask(self, rows: RowInputs, draft: Draft, logits: mx.array) -> RowInputs:
        """`rows` of the last known token and `draft` with the grammar's mask."""
        assert self._grammar is not None
        return rows._replace(allowed=mx.array(self._grammar.allowed(draft, logits.shape[-1])))

    def _rows(
        self, lead: Sequence[int], draft: Draft, unknown: mx.array | None = None
    ) -> tuple[mx.array, RowInputs]:
        """One forward pass over `lead`, or `unknown` instead, and the draft.

        Returns the logits of the last known token and of each node, and the inputs of those rows; behind an
        unknown token they have no mask.
        """
        cache = self._sequence.cache
        block = mx.array([*lead, *draft.tokens]) if unknown is None else unknown
        hooks: Any = nullcontext()
        if not draft.is_chain:
            if self._rotations is None:
                self._rotations = rotations(self._model)
            hooks = tree_pass(self._model, cache, draft.parents, len(lead), self._rotations)
        first = max(0, len(lead) - 1)
        # Behind a running pass the device has work, and other machines repeat whole passes only.
        early = EarlyStart()
        helps = unknown is None and not self._sequence.is_mirrored
        with hooks, early.within(cache if helps else ()):
            if self._states is None:
                logits = self._model(block[None], cache=cache)[0, first:]
            else:
                whole, self._hidden = self._states.read(block[None], cache)
                logits = whole[0, first:]
        self._step.waited_s += early.seconds
        self._has_work(early.first_s)
        if self._top_logprobs is not None:
            self._logits = logits
        if self._recycles:
            self._ranked = (logits.astype(mx.float32),)
        rows = self._history.inputs(lead, draft, unknown, logits.shape[-1])
        if self._grammar is not None:
            # The mask is computed while the forward pass runs.
            self._has_work(time.perf_counter())
            mx.async_eval(logits)
            if unknown is None:
                rows = self._with_mask(rows, draft, logits)
        return logits, rows


def _rejected(draft: Draft, path: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The rejected guesses after the accepted path, at most `_SHOWN_GUESSES` tokens."""
    last = path[-1] if path else -1
    if draft.is_chain:
        rest = draft.tokens[last + 1 : last + 1 + _SHOWN_GUESSES]
        return (rest,) if rest else ()
    children = (token for token, parent in zip(draft.tokens, draft.parents) if parent == last)
    return tuple((token,) for token in islice(children, _SHOWN_GUESSES))


def _concatenated(forced: tuple[int, ...], guessed: Draft) -> Draft:
    """`guessed` after the chain of certain `forced` tokens."""
    if not forced:
        return guessed
    lead = len(forced)
    forced_by: DraftSource = "grammar"
    unsaid: DraftSource = ""
    return Draft(
        (*forced, *guessed.tokens),
        (*range(-1, lead - 1), *(lead + parent for parent in guessed.parents)),
        (1.0,) * lead + guessed.confidence if len(guessed.confidence) == len(guessed) else (),
        (forced_by,) * lead + (guessed.sources or (unsaid,) * len(guessed)),
    )
