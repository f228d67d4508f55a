"""The decode loop: propose, verify in one forward pass, accept, roll back; and the statistics of its steps.

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
long, and never with a grammar or if other machines need the ids first (`CachedSequence.is_mirrored`).

Between its ids and the next pass the device waits. So the next pass is started before a step's tokens are
handed out: showing them, the statistics and whatever else is done with them happens while the device
computes. An iteration that is closed takes the started block back, as if it had not been. Not with a grammar,
a draft model or a head, whose drafting changes what cannot be taken back, nor if other machines need the ids.

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

import statistics
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import mlx.core as mx
from msgspec import Struct
from msgspec.structs import replace

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
from core.events import DraftSource, PositionStat, Stats
from core.kv.verify_block import VerifyBlock
from core.models.parts import Rotation, rotations

# Consecutive empty drafts before the loop runs ahead.
_EMPTY_DRAFTS_TO_PIPELINE = 2
# Plain steps that asking must take for the loop to run ahead at the first step of a rest. Then the step after
# the rest is plain, too. In a simulation of the pipeline over the replay's streams that was 3% faster where
# asking takes 1 plain step; it was not timed on a device.
_ASKING_TO_PIPELINE = 0.1
# Rankings after rejected guesses that are computed, deepest first: each costs a pass over a row of logits.
_REJECTED_ROWS = 2
# Folded tokens widen every block; beyond this many, a step without a draft reads them.
_FOLD_LIMIT_TOKENS = 8
# Steps between clearing MLX's buffer cache, as in mlx-lm.
_CLEAR_EVERY_STEPS = 256


class Step(Struct, frozen=True):
    """Result of one forward pass. `tokens`: the `accepted` drafted ones, then the target's own, if any.

    - `drafted`: verified nodes; `tested`: nodes that the walk reached.
    - `width`: block width, including pending tokens; `tree`: it was a tree.
    - `logprobs`: of each token, if requested.
    - `forced`: accepted tokens, the first ones, that were drafted because the grammar allows no others.
    - `proposal_cost`: time of a model's guesses, part of `draft_s`, in plain steps; 0 without a proposal.
    - `sources`: of the accepted tokens; empty if all came from the drafter's only source.
    - `waited_s`: time of waiting for the device. `pipeline`: how it ran ahead.
    - `took_s`: time since the end of the step before: this one's drafting, building and waiting, and what was
      done with tokens meanwhile. All steps together take the iteration's time.
    - `host_s`: time from the ids of the step before until the first part of this one's pass was started: the
      device has nothing to do in it. 0 if the pass was started before.
    """

    tokens: tuple[int, ...]
    drafted: int
    accepted: int
    tested: int
    draft_s: float
    width: int = 1
    tree: bool = False
    logprobs: tuple[Logprob, ...] = ()
    forced: int = 0
    proposal_cost: float = 0.0
    sources: tuple[DraftSource, ...] = ()
    waited_s: float = 0.0
    pipeline: Pipeline = "single"
    took_s: float = 0.0
    host_s: float = 0.0


class _Begun(NamedTuple):
    """A step whose pass was started, with a draft that took `draft_s`.

    `choices` of the pass; `block`: None for a plain one, which may have been running since the step before
    (`was_ahead`).
    """

    draft: Draft
    draft_s: float
    host_s: float
    choices: Choices
    block: VerifyBlock | None
    was_ahead: bool = False


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
        # Parts of the current draft: forced tokens, which the drafter has observed, and its own draft.
        self._forced: tuple[int, ...] = ()
        self._guessed = EMPTY
        self._proposal_cost = 0.0
        self._recycles = spec.recycles
        self._tops: list[list[int]] = []
        self._rejected: list[RejectedRow] = []
        self._states = answer.head
        self._hidden = mx.array(0.0)  # of the last forward pass, [rows, size], if requested
        self._rotations: list[Rotation] | None = None
        self._running: Choices | None = None
        self._begun: _Begun | None = None
        self._begins_early = (
            self._grammar is None
            and self._states is None
            and answer.proposer is None
            and not sequence.is_mirrored
        )
        # When the last ids were there and the last step ended, and when the first part of the current step's
        # pass was started.
        self._ids_s = self._ended_s = 0.0
        self._started_s: float | None = None
        self._top_logprobs = answer.request.top_logprobs
        # Logits of the last forward pass and of the last step's tokens, kept only for logprobs; those of the
        # last forward pass as float32, for rankings, which are computed with the choices; the block's width.
        self._logits = mx.array(0.0)
        self._ranked: tuple[mx.array, ...] = ()
        self._step_logits = mx.array(0.0)
        self._width = 1
        self._empty_drafts = 0
        self._steps = 0
        # Of the current step: whether the gate rests, whether the drafter is asked, and seconds of waiting
        # for the device.
        self._rests = False
        self._asks = True
        self._waited_s = 0.0
        # Expected worth of the current step's draft to the planner; None if the drafter was not asked.
        self._worth: float | None = None
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
                if self._begun is None:
                    self._begin(left)
                step = self._finish(left)
                if step.tokens[-1] == NO_CHOICE:
                    if step.accepted:
                        yield self._with_logprobs(replace(step, tokens=step.tokens[:-1]))
                    raise self._no_choice_error(step)
                left -= len(step.tokens)
                self._steps += 1
                if self._steps % _CLEAR_EVERY_STEPS == 0:
                    mx.clear_cache()
                step = self._with_logprobs(step)
                # Behind a pass that runs ahead the device has work.
                if left > 0 and self._begins_early and not self._running and step.tokens[-1] not in eos:
                    self._begin(left)
                yield step
        finally:
            self._take_back()

    def _take_back(self) -> None:
        """Removes the rows of a block that was started and not read."""
        if self._begun is not None and self._begun.block is not None:
            self._begun.block.keep(self._width, ())
        self._begun = None

    def _no_choice_error(self, step: Step) -> RequestError:
        if self._grammar is None:
            return BrokenLogitsError()
        self._grammar.advance(step.tokens[:-1])
        failure = self._grammar.failure
        if not failure:
            return BrokenLogitsError()
        return GrammarError(
            f"The answer ends here: its grammar reached a limit ({failure}).", "Use a simpler schema."
        )

    def _with_logprobs(self, step: Step) -> Step:
        """`step` with the logprobs of its tokens, if requested."""
        if self._top_logprobs is None:
            return step
        rows = self._step_logits[: len(step.tokens)]
        return replace(step, logprobs=logprobs(rows, step.tokens, self._top_logprobs))

    def _begin(self, left: int) -> None:
        """Drafts, and starts the pass of the next step."""
        started = time.perf_counter()
        self._waited_s, self._started_s = 0.0, None
        gate, asked_before = self._answer.gate, self._asks
        self._rests = gate is not None and not gate.should_draft()
        # After a rest one forward pass has been started already, and no draft can follow it.
        self._asks = not self._rests and (asked_before or self._running is None)
        # One token is reserved for the target's own, so an accepted draft never exceeds the limit.
        draft = self._propose(left - 1)
        draft_s = time.perf_counter() - started
        sequence, pending, was_ahead = self._sequence, self._pending, self._running is not None
        block: VerifyBlock | None = None
        if self._running is not None:
            choices = self._running
        elif len(draft) and len(pending) <= _FOLD_LIMIT_TOKENS:
            block = VerifyBlock(sequence.cache)
            logits, inputs = self._rows(pending, draft)
            choices = self._sampler.choose(logits, inputs)
            self._start(choices)
        else:
            choices = self._forward(pending)
            self._start(choices)
            sequence.append(pending)
            self._pending = []
        self._width = len(pending) + len(draft) if block is not None else max(1, len(pending))
        host_s = 0.0 if self._started_s is None else self._started_s - self._ids_s
        self._begun = _Begun(draft, draft_s, host_s, choices, block, was_ahead)

    def _finish(self, left: int) -> Step:
        """Reads the step that was begun, and learns from it."""
        begun, self._begun = self._begun, None
        assert begun is not None
        gate, draft = self._answer.gate, begun.draft
        step = self._run(begun, left) if begun.block is None else self._verify(begun, begun.block)
        if step.tokens[-1] == NO_CHOICE:
            return step
        started = time.perf_counter()
        forced, accepted = len(self._forced), step.accepted - len(self._forced)
        tree = step.drafted > 0 and not draft.is_chain
        self._drafter.observe(step.tokens[forced:])
        if self._recycles and self._asks:
            self._drafter.observe_top(self._tops, self._rejected)
        planner = self._answer.planner
        if planner is not None and self._asks:
            planner.record(self._width, tree, len(step.tokens), self._proposal_cost)
        elif planner is not None:
            planner.rested(len(step.tokens))
        if self._grammar is not None:
            self._grammar.advance(step.tokens)
        priced = isinstance(gate, PricedGate) and gate.decides and left > len(step.tokens)
        sure = self._drafter.sure() if priced else 0.0  # kept for a draft at the next step
        ended = time.perf_counter()
        observe_s = ended - started
        counts = self._rests or self._asks
        if isinstance(gate, PricedGate) and priced:
            gate.record(self._worth, sure)
        elif isinstance(gate, Gate) and counts:
            gate.record(1 + step.drafted - forced, accepted)
        self._left_pipeline = step.pipeline == "leaves"
        took_s, self._ended_s = ended - self._ended_s, ended
        draft_s = step.draft_s + observe_s
        if self._answer.cost is not None:
            # T is the time without a model's guesses.
            block_s = took_s - (draft_s if self._proposal_cost else 0.0)
            self._answer.cost.step(self._width, block_s, tree=tree, pipeline=step.pipeline)
        return replace(
            step,
            draft_s=draft_s,
            width=self._width,
            tree=tree,
            forced=forced,
            proposal_cost=self._proposal_cost,
            waited_s=self._waited_s,
            took_s=took_s,
            host_s=begun.host_s,
        )

    def _propose(self, budget: int) -> Draft:
        self._forced, self._guessed, self._proposal_cost, self._worth = (), EMPTY, 0.0, None
        if self._answer.exactness.width_limit is not None:
            budget = min(budget, self._answer.exactness.width_limit - len(self._pending))
        if self._answer.exactness.length_limit is not None:
            held = len(self._sequence.tokens) + len(self._pending)
            budget = min(budget, self._answer.exactness.length_limit - held)
        if budget < 1:
            return EMPTY
        grammar = self._grammar
        if self._forces and grammar is not None and len(self._pending) <= _FOLD_LIMIT_TOKENS:
            self._forced = grammar.forced[:budget]
            if self._forced:
                self._drafter.observe(self._forced)  # now, because it is certain
        # A draft can follow all forced tokens only.
        complete = grammar is None or grammar.forced_count == len(self._forced)
        if self._drafts and len(self._forced) < budget and complete:
            self._guessed = self._guess(budget - len(self._forced))
        return _concatenated(self._forced, self._guessed)

    def _guess(self, budget: int) -> Draft:
        """The drafter's draft after the forced tokens."""
        if not self._asks:
            self._empty_drafts = self._empty_drafts + 1 if self._rests else 0
            return EMPTY
        planner, known = self._answer.planner, len(self._pending) + len(self._forced)
        if planner is not None:
            self._drafter.least_probability = planner.least_probabilities(known)
        draft = sanitise(
            self._drafter.draft(budget), vocabulary=self._answer.model.info.vocabulary, budget=budget
        )
        self._proposal_cost = self._drafter.proposal_cost
        if self._grammar is not None:
            draft = self._grammar.filter_draft(draft, self._forced)
        if planner is not None:
            draft = planner.shape(draft, budget, known)
            self._worth = planner.worth(draft, known) - self._proposal_cost
            if self._left_pipeline:
                self._worth -= planner.asking  # entering it again takes as long
        self._empty_drafts = 0 if len(draft) else self._empty_drafts + 1
        return draft

    def _pulled(self, choices: Choices, *others: mx.array) -> list[int]:
        started = time.perf_counter()
        ids = choices.pull(*others)
        self._ids_s = time.perf_counter()
        self._waited_s += self._ids_s - started
        return ids

    def _start(self, choices: Choices) -> None:
        """Starts the last forward pass. This waits, too, while the device's queue is full, as a CPU's often
        is.
        """
        started = time.perf_counter()
        if self._started_s is None:
            self._started_s = started
        choices.start(*self._ranked)
        self._waited_s += time.perf_counter() - started

    def _verify(self, begun: _Begun, block: VerifyBlock) -> Step:
        sequence, pending, draft = self._sequence, self._pending, begun.draft
        lead = len(pending)
        walked = walk(draft, self._pulled(begun.choices, *self._ranked), self._answer.model.eos)
        if self._recycles:
            self._recycle(draft, walked.path)
        if self._top_logprobs is not None:
            self._step_logits = self._logits[mx.array([0, *(node + 1 for node in walked.path)])]
        accepted = [draft.tokens[node] for node in walked.path]
        rows = [*range(lead), *(lead + node for node in walked.path)]
        known = [*pending, *accepted]
        if self._states is not None:
            chain = rows[-1] == len(rows) - 1
            self._hand_out(known, self._hidden[: len(rows)] if chain else self._hidden[mx.array(rows)])
        kept = rows if block.keep(lead + len(draft), rows) else []
        sequence.append(known[: len(kept)])
        self._pending = [*known[len(kept) :], walked.last]
        if len(self._guessed):
            self._drafter.feedback(self._guessed, max(0, len(accepted) - len(self._forced)))
        return Step(
            (*accepted, walked.last),
            len(draft),
            len(accepted),
            walked.tested,
            begun.draft_s,
            sources=tuple(draft.sources[node] for node in walked.path) if draft.sources else (),
        )

    def _hand_out(self, tokens: Sequence[int], hidden: mx.array, start: int | None = None) -> None:
        """Passes on the hidden states of known tokens, from position `start`; None: the sequence's end."""
        assert self._states is not None
        first = len(self._sequence.tokens) if start is None else start
        self._states.receive(range(first, first + len(tokens)), tokens, hidden)

    def _recycle(self, draft: Draft, path: Sequence[int]) -> None:
        """Ranks ids along the accepted path, and after the rejected guesses nearest to it."""
        emitted = [0, *(node + 1 for node in path)][len(self._forced) :]
        reached = {-1, *path}
        rejected = [n for n, parent in enumerate(draft.parents) if parent in reached and n not in reached]
        rejected = rejected[-_REJECTED_ROWS:]
        ranked = top_ids(self._ranked[0], [*emitted, *(node + 1 for node in rejected)])
        self._tops = ranked[: len(emitted)]
        self._rejected = [(draft.tokens[node], row) for node, row in zip(rejected, ranked[len(emitted) :])]

    def _run(self, begun: _Begun, left: int) -> Step:
        sequence, running = self._sequence, begun.choices
        self._step_logits, ranked = self._logits, self._ranked
        if self._states is not None:
            read = sequence.tokens[len(sequence.tokens) - len(self._hidden) :]
            self._hand_out(read, self._hidden, len(sequence.tokens) - len(read))
        ahead: Choices | None = None
        # A grammar cannot say what follows a token that is not known yet.
        can_run_ahead = left > 1 and self._grammar is None and not sequence.is_mirrored
        if can_run_ahead and self._expects_no_draft():
            ahead = self._forward([], unknown=running.ids)
            self._start(ahead)
        (token,) = self._pulled(running, *ranked)
        if self._recycles and self._asks:
            self._tops, self._rejected = top_ids(ranked[0], [0]), []
        if ahead is None:
            self._pending = [token]
        else:
            sequence.append([token])
        self._running = ahead
        kinds: dict[tuple[bool, bool], Pipeline]
        kinds = {(False, True): "enters", (True, True): "ahead", (True, False): "leaves"}
        pipeline = kinds.get((begun.was_ahead, ahead is not None), "single")
        return Step((token,), 0, 0, 0, begun.draft_s, pipeline=pipeline)

    def _expects_no_draft(self) -> bool:
        """Whether the next step will hardly have a draft."""
        planner = self._answer.planner
        if self._rests and planner is not None and planner.asking >= _ASKING_TO_PIPELINE:
            return True
        return not self._drafts or self._empty_drafts >= _EMPTY_DRAFTS_TO_PIPELINE

    def _forward(self, lead: Sequence[int], unknown: mx.array | None = None) -> Choices:
        """The target's choices after known tokens, or after one still being computed; lazy."""
        logits, rows = self._rows(lead, EMPTY, unknown)
        return self._sampler.choose(logits, rows)

    def _rows(
        self, lead: Sequence[int], draft: Draft, unknown: mx.array | None = None
    ) -> tuple[mx.array, RowInputs]:
        """One forward pass over `lead`, or `unknown` instead, and the draft.

        Returns the logits of the last known token and of each node, and the inputs of those rows.
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
        self._waited_s += early.seconds
        if self._started_s is None:
            self._started_s = early.first_s
        if self._top_logprobs is not None:
            self._logits = logits
        if self._recycles:
            self._ranked = (logits.astype(mx.float32),)
        rows = self._history.inputs(lead, draft, unknown, logits.shape[-1])
        if self._grammar is not None:
            # Computed while the forward pass runs.
            if self._started_s is None:
                self._started_s = time.perf_counter()
            mx.async_eval(logits)
            rows = rows._replace(allowed=mx.array(self._grammar.allowed(draft, logits.shape[-1])))
        return logits, rows


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


_LIVE_WINDOW_S = 2.0


class Tally:
    """Counts the steps of one answer in its `stats`. Times are seconds since the request started."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._last_s = 0.0
        self._first_tokens = 0
        self._positions: list[list[int]] = []
        self._draft_us: list[float] = []
        self._host_ms: list[float] = []
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, step: Step, now_s: float) -> None:
        stats = self._stats
        if not stats.steps:
            stats.ttft_s, self._first_tokens = now_s, len(step.tokens)
        self._last_s = now_s
        stats.steps += 1
        stats.tokens += len(step.tokens)
        stats.accepted += step.accepted
        stats.drafted += step.drafted
        stats.tested += step.tested
        stats.forced += step.forced
        if step.drafted:
            stats.bonus += 1
        else:
            stats.normal += 1
        for index in range(step.tested):
            if index == len(self._positions):
                self._positions.append([0, 0])
            self._positions[index][0] += 1
            self._positions[index][1] += index < step.accepted
        self._draft_us.append(step.draft_s * 1e6)
        if step.pipeline in ("single", "enters"):
            self._host_ms.append(step.host_s * 1e3)
        self._recent.append((now_s, len(step.tokens)))
        while now_s - self._recent[0][0] > _LIVE_WINDOW_S and len(self._recent) > 1:
            self._recent.popleft()

    def sum_up(self) -> None:
        """Computes the rates and shares of what was counted so far."""
        stats = self._stats
        stats.positions = tuple(PositionStat(tested, accepted) for tested, accepted in self._positions)
        stats.acceptance = stats.accepted / stats.tested if stats.tested else 0.0
        stats.mean_per_step = stats.tokens / stats.steps if stats.steps else 0.0
        # From the first step on, without its tokens.
        stats.decode_s = self._last_s - stats.ttft_s
        later = stats.tokens - self._first_tokens
        stats.tokens_per_s = later / stats.decode_s if stats.decode_s > 0 else 0.0
        if ordered := sorted(self._draft_us):
            stats.draft_us_median = statistics.median(ordered)
            stats.draft_us_p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]

        # The first step has no step before it.
        stats.host_ms_median = statistics.median(self._host_ms[1:] or [0.0])

    @property
    def live_tokens_per_s(self) -> float:
        """Rate over the last two seconds."""
        elapsed = self._recent[-1][0] - self._recent[0][0] if self._recent else 0.0
        return sum(n for _, n in list(self._recent)[1:]) / elapsed if elapsed > 0 else 0.0
