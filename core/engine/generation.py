"""The stages of a planned answer: the cached sequence it continues, its tokens, and its end.

However the answer ends, the sequence then holds a prefix of the prompt and the shown tokens. Worker's main
thread.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import mlx.core as mx

from core.answer_format import AnswerFormat
from core.decoding.answer import Answer, MemoryGuard
from core.decoding.loop import Step
from core.decoding.repetition import Repetition
from core.decoding.text import StopTexts, TokenTexts
from core.drafting.draft import Facts
from core.drafting.predicted import prediction_counts
from core.errors import NotEnoughMemoryError
from core.events import (
    DraftSource,
    Effective,
    Finished,
    FinishReason,
    Gauges,
    Likely,
    Origin,
    Passage,
    PositionStat,
    Stats,
    TableUse,
    Token,
)
from core.models import memory
from core.prefill.reading import Reading
from core.prefill.sources import sources

_GAUGE_EVERY_S = 0.25
_LIVE_WINDOW_S = 2.0
_LEAST_SOURCED_TOKENS = 4


@contextmanager
def sequence_kept_valid(answer: Answer) -> Iterator[None]:
    """At the end the sequence holds shown tokens only; if the block fails, nothing.

    Tokens that were not shown are a stop token, which the pipelined forward had already read, and what
    follows a stop text. A cache that does not keep all positions cannot be truncated; its sequence records
    the tokens.
    """
    sequence = answer.sequence
    try:
        yield
    except NotEnoughMemoryError:
        raise  # nothing was computed, so the cache is valid
    except Exception:
        # A failed forward has advanced the caches of some layers only.
        sequence.clear()
        if answer.proposer is not None:
            answer.proposer.sequence.clear()
        raise
    finally:
        if answer.head is not None:
            answer.head.end()
        shown = len(answer.ids) + len(answer.shown)
        if sequence.keeps_all and len(sequence.tokens) > shown:
            sequence.truncate(shown)


def shorten(answer: Answer, guard: MemoryGuard) -> None:
    """Limits the answer to the context and the memory that the prompt, now read, leaves."""
    wanted = answer.settings.sampling.max_tokens
    room = answer.context_tokens - answer.held_tokens
    fits = guard.answer_tokens(answer.sequence.columns.count, min(wanted, room))
    if fits < wanted:
        reason = "more does not fit the memory" if fits < room else "the context is full after that"
        answer.downgrade("sampling.max_tokens", fits, reason)


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
        """Computes the rates and shares from the counts."""
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


class Writing:
    """Turns the steps of `answer` into tokens and figures. `reason`: why it ended; None until then."""

    def __init__(self, answer: Answer) -> None:
        request = answer.request
        self._answer = answer
        self._tally = Tally(answer.stats)
        # Without a template the answer continues the prompt's own text.
        self._texts = TokenTexts(answer.model.tokenizer, answer.ids if request.raw else answer.begun)
        self._stop_texts = StopTexts(request.stops)
        question = next((each.content for each in reversed(request.messages) if each.role == "user"), "")
        # A continued answer may repeat itself for longer.
        patient = bool(request.continuation)
        self._repetition = Repetition(question, patient=patient) if request.stop_repeating else None
        self._waiting: list[Callable[[str], Token]] = []  # tokens that get their texts
        # Taken before the drafter reads the prompt, which adds it to the table.
        self._table_before = answer.drafter.figures()
        self._before_s = self._gauge_due_s = 0.0
        self.reason: FinishReason | None = None
        self.head_tokens = 0  # accepted guesses of the head

    def begin(self) -> None:
        """The prompt was read; the first step reads its last token."""
        answer = self._answer
        known = answer.text_ids if answer.sight is not None else answer.ids
        answer.drafter.begin(known, Facts(answer.begun, answer.model.tokenizer.decode))
        if answer.gate is not None:
            answer.gate.begin(known, predicted=bool(answer.prediction))
        answer.stats.read_tokens += 1
        self._before_s = answer.now()

    def add(self, step: Step) -> Iterator[Token]:
        """The tokens of `step` and of those before it whose text is certain now."""
        answer, eos = self._answer, self._answer.model.eos
        now_s = answer.now()
        self._before_s = now_s
        self._tally.add(step, now_s)
        repeats = False
        for index, token in enumerate(step.tokens):
            self._waiting.append(self._token(step, index, now_s))
            if token not in eos:
                answer.shown.append(token)
                for text in self._texts.add(token):
                    shown = self._waiting.pop(0)(text)
                    yield from self._stop_texts.add(shown)
                    repeats = repeats or self._repeats(shown)
                if repeats:  # drafted tokens after it are not shown, as without drafts
                    break
        if self._stop_texts.stopped_by:
            self.reason = "stop"
        elif repeats:
            self.reason = "repetition"
        elif step.tokens[-1] in eos:
            self.reason = "stop"

    def rest(self) -> Iterator[Token]:
        """The tokens that waited for the end, incomplete characters included."""
        for text in self._texts.finish():
            yield from self._stop_texts.add(self._waiting.pop(0)(text))
        if self._stop_texts.stopped_by:
            self.reason = "stop"
            del self._answer.shown[self._stop_texts.complete_tokens :]
        else:
            yield from (*self._stop_texts.finish(), *(made("") for made in self._waiting))

    def _repeats(self, token: Token) -> bool:
        return self._repetition is not None and self._repetition.add(token.id, token.text)

    def _token(self, step: Step, index: int, now_s: float) -> Callable[[str], Token]:
        """Makes a token of its text, which may be certain later."""
        answer, stats = self._answer, self._answer.stats
        drafted = index < step.accepted
        origin: Origin = "accepted" if drafted else "bonus" if step.drafted else "normal"
        told = step.sources[index] if drafted and step.sources else ""
        source: DraftSource = (told or answer.spec.source) if drafted else ""
        self.head_tokens += source == "head"
        position = stats.tokens - len(step.tokens) + index
        logprob = step.logprobs[index] if step.logprobs else None
        is_last = index == len(step.tokens) - 1
        return partial(
            Token,
            answer.request.request,
            step.tokens[index],
            origin=origin,
            step=stats.steps,
            position=position,
            draft_index=index + 1 if drafted else 0,
            draft_length=step.drafted if drafted else 0,
            time_s=now_s,
            source=source,
            rejected=tuple(self._texts.alternative(*each) for each in step.rejected) if is_last else (),
            logprob=logprob.own if logprob else None,
            likely=tuple(
                Likely(token, self._texts.alternative(token), value)
                for token, value in (logprob.likely if logprob else ())
            ),
            format=None if position else answer.format,
        )

    def due_gauges(self) -> Iterator[Gauges]:
        """The gauges after a step, about four times a second."""
        if self._before_s >= self._gauge_due_s:
            self._gauge_due_s = self._before_s + _GAUGE_EVERY_S
            yield self.gauges()

    def gauges(self) -> Gauges:
        answer, stats = self._answer, self._answer.stats
        self._tally.sum_up()
        return Gauges(
            answer.request.request,
            self._tally.live_tokens_per_s,
            ttft_s=stats.ttft_s,
            tokens=stats.tokens,
            accepted=stats.accepted,
            tested=stats.tested,
            acceptance=stats.acceptance,
            mean_per_step=stats.mean_per_step,
            positions=stats.positions,
            occupancy=answer.drafter.occupancy(),
            memory_bytes=memory.used_bytes(),
            context_used_tokens=answer.context_used_tokens,
            context_tokens=answer.context_tokens,
            table=self._table(),
            plain_tokens_per_s=self._plain_tokens_per_s(),
        )

    def _plain_tokens_per_s(self) -> float:
        cost = self._answer.cost
        return cost.plain_tokens_per_s if cost else 0.0

    def finished(self, reading: Reading) -> Finished:
        """The end of the answer, with its statistics; `reading` read its prompt."""
        answer, stats, repetition = self._answer, self._answer.stats, self._repetition
        self._tally.sum_up()
        if answer.prediction:
            stats.prediction_accepted, stats.prediction_rejected = prediction_counts(
                answer.prediction, answer.begun, answer.shown
            )
        stats.prompt_tokens = len(answer.ids)
        if answer.sight is not None:
            stats.image_tokens = len(answer.ids) - len(answer.text_ids)
            stats.image_s = answer.sight.seconds
        stats.skipped_tokens = answer.sequence.skipped - answer.unattended
        stats.total_s = answer.now()
        stats.plain_tokens_per_s = self._plain_tokens_per_s()
        stats.occupancy = answer.drafter.occupancy()
        stats.context_used_tokens = answer.context_used_tokens
        stats.context_tokens = answer.context_tokens
        stats.memory_bytes = memory.used_bytes()
        stats.memory_peak_bytes = int(mx.get_peak_memory())
        stats.table = self._table()
        answer.proposer_for([*answer.ids, *answer.shown[:-1]])  # the ids that it continued
        info, gate = answer.model.info, answer.gate if answer.spec.drafts else None
        effective = Effective(
            info.name,
            info.dtype,
            answer.spec.name,
            answer.settings,
            gate=f"{gate.state}: {gate.reason}" if gate else "",
            changes=tuple(answer.changes),
            reading="sparse" if stats.skipped_tokens else "columns" if answer.unattended else "dense",
            reading_reason=answer.reading_reason,
            scorer=answer.scorer,
            format=answer.format or AnswerFormat(),
            exactness=answer.exactness.summary,
            unmatched=answer.unmatched,
        )
        return Finished(
            answer.request.request,
            self.reason or "length",
            stats,
            effective,
            sources=self._sources(reading),
            stopped_by=self._stop_texts.stopped_by,
            repeats_from=repetition.begins if repetition and self.reason == "repetition" else None,
        )

    def _sources(self, reading: Reading) -> tuple[Passage, ...]:
        """Sources of the answer; empty for one of a few tokens, which any passage could contain."""
        answer = self._answer
        # Without documents neither the layout nor the words of the prompt are computed.
        documents = any(each.text for message in answer.request.messages for each in message.attachments)
        if len(answer.shown) < _LEAST_SOURCED_TOKENS or not documents:
            return ()
        prefill = answer.settings.prefill
        return sources(answer.model, reading.layout, reading.words, reading.seen, answer.shown, prefill)

    def _table(self) -> TableUse | None:
        """Use of the shared table by this answer; None if the drafter has none."""
        before, now = self._table_before, self._answer.drafter.figures()
        if before is None or now is None:
            return None
        lookups, hits = now.lookups - before.lookups, now.hits - before.hits
        return TableUse(now.used, now.slots, before.used, lookups, hits)
