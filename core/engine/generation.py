"""Generation: one planned answer: prefill, decoding, and the events from PrefillProgress to Finished.

However the answer ends, the sequence then holds a prefix of the prompt and the shown tokens. Loads nothing;
all parts are passed in. Worker's main thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from contextlib import closing

import mlx.core as mx
from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.decoding.loop import PLAIN, DecodeLoop, DecodingOptions, Exactness, Step, Tally
from core.decoding.mtp import HeadProposer
from core.decoding.planner import Planner
from core.decoding.repetition import Repetition
from core.decoding.sampling import Sampler
from core.decoding.text import StopTexts, TokenTexts
from core.drafting.draft import Drafter
from core.drafting.gate import Gate
from core.drafting.predicted import prediction_counts
from core.drafting.registry import DrafterSpec
from core.engine.model_session import ModelProposer
from core.errors import BrokenLogitsError, GrammarError, NotEnoughMemoryError
from core.events import (
    Change,
    DraftSource,
    Effective,
    Event,
    Finished,
    FinishReason,
    Gauges,
    Generate,
    Likely,
    MemoryNeed,
    Origin,
    Passage,
    PrefillProgress,
    Stats,
    TableUse,
    Token,
)
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import KvQuantisation
from core.machine.width_cost import LiveCost
from core.models import memory
from core.models.folder import gigabytes
from core.models.loader import LoadedModel
from core.prefill.read import read_prompt
from core.prefill.reading import PromptText, Reading, ReadingInputs
from core.prefill.sources import sources
from core.settings import Settings, assign

_GAUGE_EVERY_S = 0.25
_LEAST_SOURCED_TOKENS = 4


# ---- memory
#
#     peak = memory in use + growth of the KV cache, one layer of which is copied + working memory of a chunk
#
# with the figures of `MemoryNeed`, which are estimates from the model's config (starter model on Linux: 83
# MiB estimated and 65 measured for 1,000 tokens, 268 and 296 for 4,000). What does not fit is fitted in this
# order: other chats' caches and the sentence encoder are freed; the prompt is read in smaller chunks; the
# answer is shortened; the request is refused.

# The smallest chunk, as in the setting, and the shortest answer for which a prompt is read.
_LEAST_CHUNK_TOKENS = 32
_LEAST_ANSWER_TOKENS = 64
_UNLIMITED_BYTES = 1 << 60


class MemoryGuard:
    """Fits an answer into the memory that is left, so that MLX never runs out of it.

    `need`: None for a model without an estimate, for which everything fits.

    `left_bytes()` returns the memory that is left; `release()` frees what an answer does not need, once.
    """

    def __init__(
        self, need: MemoryNeed | None, left_bytes: Callable[[], int], release: Callable[[], None]
    ) -> None:
        self._need = need or MemoryNeed()
        self._left_bytes = left_bytes if need else lambda: _UNLIMITED_BYTES
        self._release = release
        self._released = False

    def chunk_tokens(self, held: int, columns: int, wanted: int) -> int:
        """The chunk, at most `wanted`, with which the cache can grow from `held` columns to `columns`.

        Raises `NotEnoughMemoryError` if not even the smallest chunk fits.
        """
        longest = min(wanted, max(columns - held, _LEAST_CHUNK_TOKENS))
        columns += _LEAST_ANSWER_TOKENS
        grown = self._need.growth(held, columns)
        a_token = max(1, self._need.working_at(columns, 1))

        def chunk() -> int:
            return (self._left_bytes() - grown) // a_token

        found = chunk()
        if found < longest and self._frees():
            found = chunk()
        if found >= longest:
            return wanted
        if found < _LEAST_CHUNK_TOKENS:
            least = grown + a_token * _LEAST_CHUNK_TOKENS
            raise NotEnoughMemoryError(
                f"A context of {columns - _LEAST_ANSWER_TOKENS:,} tokens needs {gigabytes(least)} GB more"
                f" memory, and {gigabytes(max(0, self._left_bytes()))} GB are left.",
                "Shorten the prompt, lower the context limit, close other programs, or load a smaller model.",
            )
        return 1 << found.bit_length() - 1

    def answer_tokens(self, held: int, wanted: int) -> int:
        """The length of an answer, at most `wanted` tokens, that fits after `held` columns; at least 1."""
        need = self._need

        def peak(tokens: int) -> int:
            # A step verifies a few dozen drafted tokens at most.
            return need.growth(held, held + tokens) + need.working_at(held + tokens, _LEAST_CHUNK_TOKENS)

        if peak(wanted) <= self._left_bytes() or (self._frees() and peak(wanted) <= self._left_bytes()):
            return wanted
        return max(1, bisect_right(range(wanted), self._left_bytes(), key=peak) - 1)

    def _frees(self) -> bool:
        """Calls `release` once; returns whether it did."""
        released, self._released = self._released, True
        if not released:
            self._release()
        return not released


# ---- the answer


class AnswerPlan(Struct, frozen=True):
    """The settings that are applied, and a change for each requested one that is not.

    `context_tokens`: the limit of the context. `held_tokens`: how many tokens of the prompt the cache holds
    at most; `most_tokens`: the same where the prompt exceeds the context, else None. `cost` is T(w) for the
    planner; None if only the gate decides. `proposer`: the draft model, if it drafts. `head`: the model's MTP
    head, if it drafts. `kv`: how the cache is quantised.
    """

    settings: Settings
    spec: DrafterSpec
    drafter: Drafter
    exactness: Exactness
    context_tokens: int
    held_tokens: int
    most_tokens: int | None = None
    cost: LiveCost | None = None
    proposer: ModelProposer | None = None
    changes: tuple[Change, ...] = ()
    options: DecodingOptions = PLAIN
    kv: KvQuantisation | None = None
    head: HeadProposer | None = None


class Generation:
    """One answer to `request` as decided by `plan`. The prompt fits the context.

    `cancelled()` is called between steps and prefill chunks. Times are those of `inputs.clock` minus
    `requested_s`, in seconds.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        sequence: CachedSequence,
        text: PromptText,
        inputs: ReadingInputs,
        plan: AnswerPlan,
        cancelled: Callable[[], bool],
        request: Generate,
        requested_s: float,
        guard: MemoryGuard,
    ) -> None:
        self._loaded = loaded
        self._guard = guard
        self._sequence = sequence
        self._loaded_columns, sequence.loaded_columns = sequence.loaded_columns, 0
        self._prompt = text.ids
        self._before = text.ids[len(text.ids) - text.continued_tokens :]
        self._reading = Reading(request.request, loaded, sequence, text, plan.settings.prefill, inputs)
        self._plan = plan
        self._context_tokens = plan.context_tokens
        self._cancelled = cancelled
        self._asked = request
        self._request = request.request
        self._documents = [each.text for message in request.messages for each in message.attachments]
        self._clock = inputs.clock
        self._requested_s = requested_s
        self._gate = Gate(plan.settings.gate)
        self._tally = Tally()
        self._shown: list[int] = []
        self._texts: list[str] = []  # of the events Token
        self._format = text.format or AnswerFormat()
        self._embedder = inputs.embedder
        self._stop_texts = StopTexts(request.stops)
        self._repetition = _repetition(request) if request.stop_repeating else None
        self._first_read = 0  # the prompt's last token, once the first step reads it
        self._prefill_s = 0.0
        # Taken before the drafter reads the prompt, which adds it to the table.
        self._table_before = plan.drafter.figures()

    def events(self) -> Iterator[Event]:
        """All events, Finished last."""
        cancelled = yield from self._plan_reading()
        self._prompt = self._reading.ids
        try:
            cancelled = cancelled or (yield from self._read_prompt())
            self._shorten()
            reason: FinishReason = "cancelled" if cancelled else (yield from self._write())
        except NotEnoughMemoryError:
            raise  # nothing was computed, so the cache is valid
        except Exception:
            # A failed forward has advanced the caches of some layers only.
            self._sequence.clear()
            if self._plan.proposer is not None:
                self._plan.proposer.sequence.clear()
            raise
        finally:
            if self._plan.head is not None:
                self._plan.head.end()
            self._drop_unshown()
        yield Finished(
            self._request,
            reason,
            self._stats(),
            self._effective(),
            self._sources(),
            self._stop_texts.stopped_by,
            repeats_from=self._repetition.begins if self._repetition and reason == "repetition" else None,
        )

    def _context_used_tokens(self) -> int:
        """Tokens in the context; skipped ones do not count."""
        return self._sequence.held_tokens(len(self._prompt)) + len(self._shown)

    def _sources(self) -> tuple[Passage, ...]:
        """Sources of the answer; empty for one of a few tokens, which any passage could contain."""
        # Without documents neither the layout nor the words of the prompt are computed.
        if len(self._shown) < _LEAST_SOURCED_TOKENS or not any(self._documents):
            return ()
        reading, settings = self._reading, self._plan.settings.prefill
        return sources(self._loaded, reading.layout, reading.words, reading.seen, self._shown, settings)

    def _plan_reading(self) -> Generator[Event, None, bool]:
        """Decide between dense and sparse prefill, which may need scoring. Returns whether cancelled."""
        with closing(self._reading.plan()) as planning:
            for event in planning:
                self._prefill_s = self._now()
                yield replace(event, time_s=self._prefill_s)
                if self._cancelled():
                    return True
        return False

    def _read_prompt(self) -> Generator[Event, None, bool]:
        """Prefill of the model and of a draft model for drafting. Returns whether cancelled."""
        proposer = self._plan.proposer
        if proposer is not None and not proposer.loaded.has_rows(self._prompt):
            proposer = None
        total, also = 0, len(self._prompt) - 1 if proposer else 0
        progress = self._reading.progress
        if proposer is not None:
            progress.expect_draft(also, proposer.pace.seconds)
        with closing(self._reading.events()) as reading:
            for event in reading:
                self._prefill_s = self._now()
                if isinstance(event, PrefillProgress):
                    total = event.total_tokens
                    total_then = total + (also if event.phase == "reading" else 0)
                    event = replace(event, total_tokens=total_then, time_s=self._prefill_s)
                yield event
                if self._cancelled():
                    return True
        if proposer is None:
            return False
        proposer.sequence.reuse(self._prompt)
        chunk_tokens = self._reading.chunk_tokens
        model, sequence = proposer.loaded.model, proposer.sequence
        steps = read_prompt(
            model,
            sequence,
            self._prompt,
            chunk_tokens=chunk_tokens,
            snapshots=self._reading.snapshot_lengths(sequence),
        )
        before: int | None = None
        for step in steps:
            then_s, self._prefill_s = self._prefill_s, self._now()
            if before is not None:
                chunk = step.done_tokens - before, before, self._prefill_s - then_s
                proposer.pace = proposer.pace.read(*chunk)
            before, left_s = step.done_tokens, progress.read_by_draft(step.done_tokens)
            yield PrefillProgress(
                *(self._request, total + step.done_tokens, total + also),
                *(self._reading.outcome.reused_tokens, left_s),
                time_s=self._prefill_s,
                fraction=progress.fraction,
            )
            if self._cancelled():
                return True
        return False

    def _shorten(self) -> None:
        """Limit the answer to the context and the memory that the prompt, now read, leaves.

        A change says so.
        """
        plan, wanted = self._plan, self._plan.settings.sampling.max_tokens
        room = self._context_tokens - self._sequence.held_tokens(len(self._prompt))
        fits = self._guard.answer_tokens(self._sequence.columns.count, min(wanted, room))
        if fits < wanted:
            reason = "more does not fit the memory" if fits < room else "the context is full after that"
            change = Change("sampling.max_tokens", str(wanted), str(fits), reason)
            settings = assign(plan.settings, "sampling.max_tokens", fits)
            self._plan = replace(plan, settings=settings, changes=(*plan.changes, change))

    def _write(self) -> Generator[Event, None, FinishReason]:
        """Decode, and keep the text. Returns why the answer ended."""
        with closing(self._decode()) as decoding:
            while True:
                try:
                    event = next(decoding)
                except StopIteration as end:
                    reason: FinishReason = end.value
                    return reason
                if isinstance(event, Token):
                    self._texts.append(event.text)
                yield event

    def _decode(self) -> Generator[Event, None, FinishReason]:
        """The events of decoding. Returns why the answer ended."""
        loaded, plan = self._loaded, self._plan
        plan.drafter.begin(self._prompt)
        self._gate.begin(self._prompt, predicted=bool(plan.options.prediction))
        self._first_read = 1
        loop = DecodeLoop(
            loaded.model,
            self._sequence,
            self._prompt[-1],
            plan.drafter,
            Sampler(plan.settings.sampling, plan.options.bias),
            vocabulary=loaded.info.vocabulary,
            drafts=plan.spec.drafts,
            gate=self._gate if plan.cost is None else None,
            planner=Planner(plan.cost, plan.cost.needs_plain) if plan.cost else None,
            recycles=plan.spec.recycles,
            exactness=plan.exactness,
            stops=loaded.eos,
            begun=len(self._before),
            options=plan.options,
            states=plan.head,
        )
        # Without a template the answer continues the prompt's own text.
        before = self._prompt if self._asked.raw else self._before
        texts, stop_texts = TokenTexts(loaded.tokenizer, before), self._stop_texts
        waiting: list[Token] = []
        reason: FinishReason = "length"
        repeats = False
        gauge_due_s = 0.0
        before_s = self._now()
        broken: BrokenLogitsError | GrammarError | None = None
        try:
            for step in loop.steps(plan.settings.sampling.max_tokens):
                now_s = self._now()
                step_s, before_s = now_s - before_s, now_s
                if plan.cost is not None:
                    # T is the time of the block alone.
                    asked_s = step.draft_s if step.proposal_cost else 0.0
                    plan.cost.step(step.width, step_s - asked_s)
                self._tally.add(step, now_s)
                for index, token in enumerate(step.tokens):
                    waiting.append(self._token(step, index, now_s, texts))
                    if token not in loaded.eos:
                        self._shown.append(token)
                        for text in texts.add(token):
                            shown = replace(waiting.pop(0), text=text)
                            yield from stop_texts.add(shown)
                            repeats = repeats or self._repeats(shown)
                        if repeats:  # drafted tokens after it are not shown, as without drafts
                            break
                if stop_texts.stopped_by:
                    reason = "stop"
                    break
                if repeats:
                    reason = "repetition"
                    break
                if step.tokens[-1] in loaded.eos:
                    reason = "stop"
                    break
                if self._cancelled():
                    reason = "cancelled"
                    break
                if now_s >= gauge_due_s:
                    gauge_due_s = now_s + _GAUGE_EVERY_S
                    yield self._gauges()
        except (BrokenLogitsError, GrammarError) as error:
            broken = error  # the tokens before it are shown, incomplete characters included
        for text in texts.finish():
            yield from stop_texts.add(replace(waiting.pop(0), text=text))
        if stop_texts.stopped_by:
            reason = "stop"
            del self._shown[stop_texts.complete_tokens :]
        else:
            yield from (*stop_texts.finish(), *waiting)
        if broken:
            raise broken
        yield self._gauges()
        return reason

    def _repeats(self, token: Token) -> bool:
        return self._repetition is not None and self._repetition.add(token.id, token.text)

    def _token(self, step: Step, index: int, now_s: float, texts: TokenTexts) -> Token:
        drafted = index < step.accepted
        origin: Origin = "accepted" if drafted else "bonus" if step.drafted else "normal"
        source: DraftSource = ""
        if drafted:
            source = (step.sources[index] if step.sources else "") or self._plan.spec.source
        return Token(
            self._request,
            step.tokens[index],
            "",
            origin,
            self._tally.steps,
            self._tally.tokens - len(step.tokens) + index,
            index + 1 if drafted else 0,
            step.drafted if drafted else 0,
            now_s,
            source,
            step.logprobs[index].own if step.logprobs else None,
            tuple(
                Likely(token, texts.alternative(token), value)
                for token, value in (step.logprobs[index].likely if step.logprobs else ())
            ),
        )

    def _gauges(self) -> Gauges:
        tally, drafter = self._tally, self._plan.drafter
        return Gauges(
            self._request,
            tally.live_tokens_per_s,
            tally.first_s,
            tally.tokens,
            tally.accepted,
            tally.tested,
            tally.acceptance,
            tally.mean_per_step,
            tally.positions,
            drafter.occupancy(),
            memory.used_bytes(),
            self._context_used_tokens(),
            self._context_tokens,
            self._table(),
        )

    def _stats(self) -> Stats:
        tally, reading = self._tally, self._reading.outcome
        came, never = prediction_counts(self._plan.options.prediction, self._before, self._shown)
        return Stats(
            prompt_tokens=len(self._prompt),
            reused_tokens=reading.reused_tokens,
            disk_tokens=min(self._loaded_columns, reading.reused_tokens),
            read_tokens=reading.read_tokens + self._first_read,
            skipped_tokens=self._sequence.skipped,
            scored_tokens=reading.scored_tokens,
            read_on_tokens=reading.read_on_tokens,
            kept_tokens=reading.kept_tokens,
            tokens=tally.tokens,
            accepted=tally.accepted,
            bonus=tally.bonus,
            normal=tally.normal,
            steps=tally.steps,
            drafted=tally.drafted,
            tested=tally.tested,
            forced=tally.forced,
            prediction_accepted=came,
            prediction_rejected=never,
            acceptance=tally.acceptance,
            mean_per_step=tally.mean_per_step,
            ttft_s=tally.first_s,
            prefill_s=self._prefill_s,
            score_s=reading.score_s,
            decode_s=tally.last_s - tally.first_s,
            total_s=self._now(),
            tokens_per_s=tally.tokens_per_s,
            positions=tally.positions,
            occupancy=self._plan.drafter.occupancy(),
            draft_us_median=tally.draft_us_median,
            draft_us_p99=tally.draft_us_p99,
            context_used_tokens=self._context_used_tokens(),
            context_tokens=self._context_tokens,
            memory_bytes=memory.used_bytes(),
            memory_peak_bytes=int(mx.get_peak_memory()),
            table=self._table(),
        )

    def _table(self) -> TableUse | None:
        """Use of the shared table by this answer; None if the drafter has none."""
        before, now = self._table_before, self._plan.drafter.figures()
        if before is None or now is None:
            return None
        lookups, hits = now.lookups - before.lookups, now.hits - before.hits
        return TableUse(now.used, now.slots, before.used, lookups, hits)

    def _effective(self) -> Effective:
        info, plan = self._loaded.info, self._plan
        gate, reading = self._gate.decision, self._reading.outcome
        return Effective(
            info.name,
            info.dtype,
            plan.spec.name,
            plan.settings,
            f"{gate.state}: {gate.reason}" if plan.spec.drafts and not plan.cost else "",
            (*plan.changes, *reading.changes),
            "sparse" if self._sequence.skipped else "dense",
            reading.reason,
            reading.scorer,
            exactness=plan.exactness.summary,
            unmatched=reading.unmatched,
        )

    def _drop_unshown(self) -> None:
        """Remove tokens from the sequence that were not shown.

        These are a stop token, which the pipelined forward had already read, and what follows a stop text. A
        cache that does not keep all positions cannot be truncated; its sequence records the tokens.
        """
        shown = len(self._prompt) + len(self._shown)
        if self._sequence.keeps_all and len(self._sequence.tokens) > shown:
            self._sequence.truncate(shown)

    def _now(self) -> float:
        return self._clock() - self._requested_s


def _repetition(request: Generate) -> Repetition:
    """The detector for the answer to `request`; a continued answer may repeat itself for longer."""
    question = next((each.content for each in reversed(request.messages) if each.role == "user"), "")
    return Repetition(question, patient=bool(request.continuation))
