"""Reads one prompt into a sequence, densely or sparsely, as planned (`core.prefill.plan`).

Call `plan` first, then iterate `events` once. Skipped passages of earlier turns that are relevant for this
question are quoted before it. If documents were read before the question, the columns of chosen passages
may be enough: then the answer has a separate sequence, with these columns and the question, and the planned
sequence stays unchanged for later turns. The same applies if only a part of the documents was read before:
the sparsely read remainder attends to chosen passages of that part.

If scoring or skipping fails, all of the prompt that was not skipped before is read, without a quotation, and
the answer gives the reason; only requests that cannot be met and exhausted memory raise. A sparse prefill
that is cancelled or fails leaves the sequence as it was after `plan`. Worker's main thread.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from math import inf
from typing import Any

import numpy as np
from msgspec.structs import replace

from core.decoding.answer import Answer, DraftReader, MemoryGuard, Pace
from core.encoder.store import Embedder
from core.errors import NotEnoughMemoryError, PromptTooLongError, reason_of
from core.events import PrefillProgress, ReadingMap, ReadingPace
from core.events.answer import PrefillPhase
from core.kv.mlx_lm_caches import largest_window
from core.models import memory
from core.prefill.forecast import PrefillClock, chosen_passages, most_read_tokens
from core.prefill.layout import Layout, Passages
from core.prefill.plan import (
    LATEST,
    Drafts,
    Planning,
    Preference,
    ReadingPlan,
    Selection,
    all_is_read,
    dense_s,
    must_keep,
    passage_map,
    preference_by_size,
    select,
)
from core.prefill.read import Positions, ReadProgress, ReadSteps, read_kept, read_prompt, timed_steps
from core.prefill.words import Words

# A snapshot ends a chunk, and an additional chunk costs about as much as reading this many tokens.
_SNAPSHOT_EVERY = 16
# Interval of events within a chunk.
_EVENT_S = 0.4


class Unmeasured:
    """The pace of a machine that was not measured: no time is known or recorded."""

    pace: ReadingPace | None = None

    def dense_s(self, tokens: int, context_tokens: int = 0) -> float | None:
        return None

    def timed(self, tokens: int, context_tokens: int, seconds: float) -> None:
        pass

    def scoring_s(self, scorer: str) -> float | None:
        return None

    def scored(self, scorer: str, tokens: float, seconds: float) -> None:
        pass

    def probe(self) -> ReadingPace | None:
        return None


class Reading:
    """Reads the prompt of `answer` into its sequence; at the end that holds all of it but the last id.

    `drafts`: None without draft models; `embedder`: None without a sentence encoder; `pace`: None if not
    measured. `guard` fits chunks into the memory. `preference`: the model's; None: by its size.
    """

    def __init__(
        self,
        answer: Answer,
        drafts: Drafts | None = None,
        embedder: Embedder | None = None,
        pace: Pace | None = None,
        guard: MemoryGuard | None = None,
        preference: Preference | None = None,
    ) -> None:
        self._answer = answer
        self._guard = guard or MemoryGuard()
        self._pace = pace or Unmeasured()
        self._clock = PrefillClock(self._pace.pace)
        preference = preference or preference_by_size(answer.model.info.parameters)
        self._planning = Planning(answer, self._clock, self._pace, drafts, embedder, preference)
        self._event_s = -inf  # time of the latest event
        self._passages = 0  # number of passages that are read
        self._draft_tokens = 0  # tokens that the drafting draft model will read

    @property
    def whole(self) -> bool:
        """Whether only a cached prefix without gaps may be reused."""
        return bool(self._planning.dense)

    @property
    def layout(self) -> Layout:
        """The layout of the answer's `ids`, once planned."""
        return self._plan.text.layout

    @property
    def words(self) -> Words:
        """The terms of the answer's `ids`, once planned."""
        return self._plan.text.words

    @property
    def seen(self) -> Positions:
        """int32: positions whose text the model has read, in place or in a quotation."""
        columns = self._answer.sequence.columns
        return np.union1d(columns.places(0, columns.count), self._plan.text.quoted)

    def plan(self) -> Generator[PrefillProgress, None, None]:
        """Plan, and record the plan in the answer. Raises `RequestError` kinds.

        Yields the progress of scoring; close it to cancel.
        """
        answer = self._answer
        self._expect_draft()
        with closing(self._planning.plan()) as planning:
            try:
                while True:
                    yield self._progress(0, next(planning), phase="scoring")
            except StopIteration as end:
                plan: ReadingPlan = end.value
        self._plan = plan
        answer.ids[:], answer.branches = plan.text.ids, plan.text.branches
        answer.stats.read_on_tokens = len(plan.text.quoted)
        answer.sparse, answer.reading_reason = plan.sparse, plan.reading_reason()
        answer.scorer, answer.unmatched = plan.scorer, plan.unmatched
        answer.changes += plan.changes

    def events(self) -> Generator[PrefillProgress | ReadingMap, None, None]:
        """Read, with the model and then with a draft model that drafts.

        Yields progress before the first chunk of each and after each chunk; close it to cancel.
        """
        answer = self._answer
        if answer.sight is not None:  # before chunks are fitted into the memory that the tower leaves
            for _ in answer.sight.rows_in(answer.ids, len(answer.sequence.tokens)):
                yield self._progress(answer.sequence.columns.count, answer.held_tokens - 1)
        proposer = answer.proposer_for(answer.ids)  # quotations were inserted after the plan
        if proposer is not None:
            self._draft_tokens = len(answer.ids) - 1
            self._expect_draft()
        if not ((answer.sparse or self._plan.columns) and (yield from self._skip())):
            steps = read_prompt(
                answer.model.model,
                answer.sequence,
                answer.ids,
                chunk_tokens=self._fit_chunk(answer.held_tokens),
                snapshots=self._snapshot_lengths(),
                states=answer.head,
                sight=answer.sight,
                clock=answer.clock,
            )
            yield from self._followed(steps)
        if proposer is not None:
            yield from self._read_by_draft(proposer)

    def _attend(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Give the answer a sequence with the columns of the chosen passages before the question."""
        answer, sequence, stats = self._answer, self._answer.sequence, self._answer.stats
        at = int(np.argmax(self.layout.question))
        if len(sequence.tokens) > at:  # rows of the same question, which attended to everything
            sequence.truncate(at)
            stats.reused_tokens = at
        before = answer.ids[: at + 1]
        chunk_tokens, head = self._fit_chunk(at), answer.head
        steps = read_prompt(
            answer.model.model,
            sequence,
            before,
            chunk_tokens=chunk_tokens,
            states=head,
            sight=answer.sight,
            clock=answer.clock,
        )
        yield from self._followed(steps, later_tokens=len(answer.ids) - len(before))
        if head is not None:
            head.end()  # it has read the prefix of the new sequence
        chosen = self._select(self.layout)
        self._take_columns(chosen, at)
        if answer.unattended:
            stats.kept_tokens = len(chosen.positions) + 1
            yield self._map(chosen, self.layout, len(answer.ids))
        else:
            self._fall_back("the answer attends to all of the text read before", deviates=False)
        return False

    def _take_columns(self, chosen: Selection, end: int) -> None:
        """Give the answer a sequence with the columns of the chosen passages; `end`: that of its sequence."""
        answer, kept = self._answer, chosen.positions
        selected = answer.sequence.selected(kept[kept < end])
        if selected.skipped:
            answer.sequence, answer.unattended = selected, selected.skipped

    def _skip(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Read sparsely, or select columns. Returns False if the remainder is to be read densely.

        That is so after columns were selected, and if skipping failed or is impossible.
        """
        try:
            return (yield from self._sparse() if self._answer.sparse else self._attend())
        except NotEnoughMemoryError:
            raise  # reading everything would need even more memory
        except Exception as error:
            if memory.fault(error) or self._answer.most_tokens is not None:
                raise
            self._fall_back(f"skipping failed ({reason_of(error)}), so all of it was read")
            return False

    def _sparse(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Returns False if no passage can be skipped."""
        answer, layout = self._answer, self.layout
        chosen = self._select(layout)
        if layout.goes_on:
            answer.reading_reason += "; it continues the text, so mostly the end of the text is read"
        if chosen.kept.all():
            reason = "no passage could be skipped: the prompt's end and its fixed parts are always read"
            self._fall_back(reason, deviates=answer.settings.prefill.mode == "on")
            return False
        finished, planned = False, answer.sequence
        planned.snapshot()
        try:
            if self._plan.columns:
                self._take_columns(chosen, self._plan.start)
            yield from self._read(chosen, layout)
            finished = True
        finally:
            if not finished:
                answer.sequence, answer.unattended = planned, 0
                self._take_back()
        return True

    def _select(self, layout: Layout) -> Selection:
        assert self._plan.scored is not None
        passages, scored = self._plan.scored
        always_read = layout.always_read
        if self._plan.columns and not self._answer.sparse:  # the turns after the last document
            always_read[int(np.flatnonzero(layout.source >= 0)[-1]) + 1 :] = True
        window_tokens = largest_window(self._answer.sequence.cache)
        return select(
            scored.scores,
            always_read,
            passages,
            keep_pct=self._keep_pct(always_read, passages, window_tokens),
            window_tokens=window_tokens,
            latest=LATEST if layout.goes_on else 0.0,
        )

    def _keep_pct(self, always_read: np.ndarray[Any, Any], passages: Passages, window_tokens: int) -> float:
        """The setting, or less where the context cannot hold that and the passages that are always read."""
        answer, keep_pct = self._answer, self._answer.settings.prefill.keep_pct
        new_tokens, lengths = passages.end - self._plan.start, passages.lengths
        if answer.most_tokens is None or answer.held_tokens <= answer.most_tokens:
            return keep_pct
        # The last chosen passage may exceed the share by all but one of its tokens.
        always = int(lengths[must_keep(always_read, passages, window_tokens)].sum())
        held = answer.sequence.columns.count + always + int(lengths.max())
        fits = 100 * (most_read_tokens(answer.most_tokens) - held) / new_tokens
        if fits <= 0:
            raise PromptTooLongError(len(answer.ids), answer.context_tokens - 1)
        if fits < keep_pct:
            asked = f"{keep_pct:g}"
            for change in [each for each in answer.changes if each.setting == "prefill.keep_pct"]:
                answer.changes.remove(change)
                asked = change.asked
            reason = "more of the text does not fit into the context"
            answer.downgrade("prefill.keep_pct", f"{fits:.1f}", reason, asked=asked)
        return min(fits, keep_pct)

    def _read(self, chosen: Selection, layout: Layout) -> Iterator[PrefillProgress | ReadingMap]:
        answer, sequence = self._answer, self._answer.sequence
        kept, tokens = chosen.positions, len(answer.ids)
        answer.stats.kept_tokens = len(kept) + 1
        kept = kept[kept >= self._plan.start]
        yield self._map(chosen, layout, answer.held_tokens - (tokens - 1 - self._plan.start - len(kept)))
        # At least two tokens follow each snapshot but the last: no chunk has one token.
        lengths, end = self._snapshot_lengths(), tokens - 1
        steps = read_kept(
            answer.model.model,
            sequence,
            answer.ids,
            kept,
            chunk_tokens=self._fit_chunk(sequence.columns.count + len(kept)),
            snapshots=[*(min(length, end - 2) for length in lengths), end],
            states=answer.head,
            sight=answer.sight,
            clock=answer.clock,
        )
        yield from self._followed(steps)

    def _map(self, chosen: Selection, layout: Layout, held_tokens: int) -> ReadingMap:
        answer = self._answer
        answer.stats.prefill_s = answer.now()
        passages = passage_map(chosen, layout)
        self._passages = chosen_passages(passages)
        return ReadingMap(
            answer.request.request,
            answer.scorer,
            len(answer.ids),
            answer.stats.kept_tokens,
            passages,
            dense_s=dense_s(answer, self._pace, self._plan.start),
            held_tokens=held_tokens,
            all_fits=answer.most_tokens is None,
            always_tokens=chosen.always_tokens,
        )

    def _snapshot_lengths(self) -> list[int]:
        """Lengths of the prompt, ascending, at which the sequence takes snapshots; empty if it needs none.

        Later prompts diverge from this one at a branch of the chat, at the question (when it is edited),
        after the fixed head (in another chat) or not at all (when the answer is regenerated).
        """
        answer = self._answer
        if answer.sequence.keeps_all:
            return []
        end = len(answer.ids) - 1
        found: list[int] = []
        for length in sorted({*self.layout.borders, *answer.branches, end}):
            if 0 < length <= end and (not found or length - found[-1] >= _SNAPSHOT_EVERY):
                found.append(length)
        return found

    def _fit_chunk(self, columns: int) -> int:
        """The largest chunk for which memory suffices until the cache has `columns`."""
        answer, wanted = self._answer, self._answer.settings.prefill.chunk_tokens
        undivided = answer.sight.undivided_rows if answer.sight is not None else 0
        fits = self._guard.chunk_tokens(answer.sequence.columns.count, columns, wanted, undivided)
        if fits < wanted:
            answer.downgrade("prefill.chunk_tokens", fits, "the memory does not suffice for larger chunks")
        return fits

    def _followed(self, steps: ReadSteps, later_tokens: int = 0) -> Generator[PrefillProgress, None, None]:
        """Convert `steps` to progress events and record the time of each chunk.

        `later_tokens` are read after them.
        """
        answer, stats = self._answer, self._answer.stats
        left_out = answer.unattended
        with closing(timed_steps(steps, self._pace, answer.clock)) as timed:
            for step in timed:
                left_tokens = step.total_tokens - step.done_tokens - step.part_tokens + later_tokens
                self._clock.read(left_tokens, step.done_tokens + step.part_tokens, answer.now())
                done_tokens, total_tokens = step.done_tokens + left_out, step.total_tokens + left_out
                stats.read_tokens = done_tokens - stats.reused_tokens
                if self._is_due(step):
                    yield self._progress(done_tokens, total_tokens + self._draft_tokens)

    def _read_by_draft(self, proposer: DraftReader) -> Generator[PrefillProgress, None, None]:
        """Bring the draft model's sequence to the prompt."""
        answer = self._answer
        proposer.sequence.reuse(answer.ids)
        read = answer.held_tokens - 1
        steps = read_prompt(
            proposer.loaded.model,
            proposer.sequence,
            answer.ids,
            chunk_tokens=answer.settings.prefill.chunk_tokens,
            clock=answer.clock,
        )
        with closing(timed_steps(steps, proposer.profile, answer.clock)) as timed:
            for step in timed:
                left_tokens = step.total_tokens - step.done_tokens - step.part_tokens
                self._clock.read_by_draft(left_tokens, step.done_tokens + step.part_tokens, answer.now())
                if self._is_due(step):
                    progress = self._progress(read + step.done_tokens, read + self._draft_tokens)
                    yield replace(progress, scored_tokens=0, kept_tokens=0)  # the draft model reads all of it

    def _expect_draft(self) -> None:
        """Announce the reading of a drafting draft model, unless it reads the whole prompt for scoring."""
        proposer, answer = self._answer.proposer, self._answer
        if proposer is not None:
            size = proposer.loaded.info.parameters / max(1, answer.model.info.parameters)
            tokens = len(answer.ids) - 1 - proposer.sequence.shared(answer.ids)
            self._clock.expect_draft(tokens, proposer.profile.pace, size)

    def _is_due(self, step: ReadProgress) -> bool:
        """Whether to report a step: always at the end of a chunk, at intervals within one."""
        return not step.part_tokens or self._answer.now() - self._event_s >= _EVENT_S

    def _progress(self, done: int, total: int, phase: PrefillPhase = "reading") -> PrefillProgress:
        answer, stats = self._answer, self._answer.stats
        stats.prefill_s = self._event_s = answer.now()
        forecast = self._clock.forecast(stats.prefill_s)
        kept_tokens = stats.kept_tokens if answer.sparse else 0
        return PrefillProgress(
            answer.request.request,
            done,
            total,
            stats.reused_tokens,
            seconds_left=forecast.seconds_left,
            phase=phase,
            scored_tokens=stats.scored_tokens,
            kept_tokens=kept_tokens,
            time_s=stats.prefill_s,
            fraction=forecast.fraction,
            passages=self._passages if kept_tokens else 0,
            tokens_per_s=forecast.tokens_per_s,
            at_s=time.monotonic(),
        )

    def _take_back(self) -> None:
        if self._plan.start:
            self._answer.sequence.truncate(self._plan.start)
        else:
            self._answer.sequence.clear()

    def _fall_back(self, reason: str, *, deviates: bool = True) -> None:
        answer = self._answer
        answer.sparse, answer.reading_reason = False, self._plan.reading_reason(reason)
        answer.scorer = ""
        answer.stats.read_tokens = answer.stats.kept_tokens = 0
        if deviates:
            answer.changes.append(all_is_read(answer.settings.prefill, reason))
