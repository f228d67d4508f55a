"""Reading: one prompt on its way into a sequence: plan → score → choose → read, or all of it.

`plan` first, then `events` once. Whatever goes wrong with skipping, everything is read instead
and `outcome` says why; only requests that cannot be met and exhausted memory are raised. A
sparse prefill that does not come to its end (cancel, error) leaves the sequence as it was after
`plan`: nothing half-written. Worker's main thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import mlx.core as mx
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.events import Change, PrefillPhase, PrefillProgress, ReadingMap
from core.kv.cached_sequence import CachedSequence
from core.kv.entries import largest_window
from core.models.loader import LoadedModel
from core.models.rope import rotations
from core.models.runtime import memory
from core.prefill.layout import Layout
from core.prefill.plan import NOTHING_STANDS_OUT, Decision, decide, refused, unclear, why_whole
from core.prefill.read import ReadProgress, read_kept, read_prompt
from core.prefill.reading_map import passages
from core.prefill.scorers.lexical import clearness, rarest_shared_word
from core.prefill.scorers.registry import SCORERS
from core.prefill.scorers.score_propagation import carried_tokens
from core.prefill.scorers.scorer import ScorerInputs, ScoringDraft
from core.prefill.select import LATEST, Selection, select
from core.settings.prefill import Prefill

# Finds more than early layers and as much as both together, at a hundredth of their time
# (notes/retrieval.md).
_BEST = "lexical"


class PromptText(Struct, frozen=True):
    """A prompt: its ids, the question in words (empty if unknown), and its layout when needed.

    The last `continued_tokens` of the ids are the answer's own: it goes on behind them.
    """

    ids: list[int]
    asked: str
    layout: Callable[[], Layout]
    continued_tokens: int = 0


class ReadingInputs(Struct, frozen=True):
    """What a reading may need of others.

    `why_no_gaps(tokens)`: why the target cannot read a prompt of that length with gaps.
    `draft()`: a draft model of the family; raises `DraftModelError` if there is none.
    `dense_s(tokens, context_tokens)`: how long reading all of so many tokens behind so many others takes
    here, None if nobody knows; `timed(tokens, context_tokens, seconds)` is told what a chunk took.
    `clock`: seconds.
    """

    why_no_gaps: Callable[[int], str]
    draft: Callable[[], ScoringDraft]
    dense_s: Callable[[int, int], float | None] = lambda tokens, context_tokens: None
    timed: Callable[[int, int, float], None] = lambda tokens, context_tokens, seconds: None
    clock: Callable[[], float] = time.perf_counter


class Outcome(Struct, frozen=True):
    """What became of it. Token counts as in `Stats`, without the prompt's last token."""

    sparse: bool = False
    reason: str = ""
    scorer: str = ""
    reused_tokens: int = 0
    read_tokens: int = 0
    scored_tokens: int = 0
    kept_tokens: int = 0
    score_s: float = 0.0
    changes: tuple[Change, ...] = ()


class Reading:
    """`text` into `sequence`, which holds any context before `plan`, and all but the last id at the end."""

    def __init__(
        self,
        request: str,
        loaded: LoadedModel,
        sequence: CachedSequence,
        text: PromptText,
        settings: Prefill,
        inputs: ReadingInputs,
    ) -> None:
        self._request = request
        self._loaded = loaded
        self._sequence = sequence
        self._text = text
        self._settings = settings
        self._inputs = inputs
        self._draft: ScoringDraft | None = None
        self._from = 0
        self.outcome = Outcome()

    def plan(self) -> None:
        """Reuse what can be, and decide. Raises `RequestError` kinds."""
        settings, ids = self._settings, self._text.ids
        whole = why_whole(settings, self._text.asked)
        self._from = self._sequence.reuse(ids, whole=bool(whole))
        decision = decide(settings, whole, len(ids) - self._from, self._dense_s())
        if decision.sparse and settings.mode == "auto" and self._is_unclear():
            decision = Decision(False, NOTHING_STANDS_OUT, refused(settings, NOTHING_STANDS_OUT))
        if decision.sparse and (why_not := self._inputs.why_no_gaps(len(ids))):
            decision = Decision(
                False, why_not, refused(settings, f"{self._loaded.info.name} cannot skip: {why_not}")
            )
        scorer = self._choose() if decision.sparse else ""
        skipped = self._sequence.skipped
        self.outcome = Outcome(
            decision.sparse,
            f"{decision.reason}; {skipped:,} earlier ones stay skipped" if skipped else decision.reason,
            scorer,
            self._sequence.columns.count,
            changes=(decision.change,) if decision.change else (),
        )

    def events(self) -> Generator[PrefillProgress | ReadingMap, None, None]:
        """Read. Progress before the first piece of work and after each; close it to cancel."""
        if self.outcome.sparse:
            try:
                if (yield from self._sparse()):
                    return
            except Exception as error:
                if memory.is_exhausted(error):
                    raise
                reason = f"skipping failed ({type(error).__name__}: {error}), so all of it was read"
                self._fall_back(reason, refused(self._settings, reason))
        yield from self._whole()

    def _dense_s(self) -> float | None:
        """How long reading all that is new would take, if that is known."""
        return self._inputs.dense_s(len(self._text.ids) - self._from, self._sequence.columns.count)

    def _is_unclear(self) -> bool:
        """Whether nothing stands out; where a text just goes on, nothing has to."""
        layout = self._text.layout()
        if layout.goes_on:
            return False
        pieces = self._loaded.tokenizer.convert_ids_to_tokens(self._text.ids[self._from :])
        question, passage_tokens = layout.question[self._from :], self._settings.passage_tokens
        rarest = rarest_shared_word(pieces, question, passage_tokens, self._loaded.word_rank)
        return unclear(clearness(pieces, question, passage_tokens), rarest)

    def _choose(self) -> str:
        wanted = _BEST if self._settings.scorer == "auto" else self._settings.scorer
        if SCORERS[wanted].needs_draft:
            self._draft = self._inputs.draft()
        return wanted

    def _whole(self) -> Iterator[PrefillProgress]:
        # Only caches that forget need marks; the others go back to any length.
        sequence, ids = self._sequence, self._text.ids
        marks = [] if sequence.keeps_all else [*self._text.layout().borders, len(ids) - 1]
        chunk = self._settings.chunk_tokens
        yield from self._followed(
            read_prompt(
                self._loaded.model, sequence, ids, chunk_tokens=chunk, marks=marks, clock=self._inputs.clock
            )
        )

    def _sparse(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Returns False if there is nothing to skip."""
        layout = self._text.layout()
        scores = yield from self._scored(layout)
        chosen = self._select(scores, layout)
        if layout.goes_on:
            reason = f"{self.outcome.reason}; it goes on from the end, so most of what is read is the end"
            self.outcome = replace(self.outcome, reason=reason)
        if chosen.kept.all():
            reason = "nothing of it could be skipped: its end and its fixed parts are always read"
            self._fall_back(reason, refused(self._settings, reason) if self._settings.mode == "on" else None)
            return False
        finished = False
        self._sequence.mark()
        try:
            yield from self._read(chosen, layout)
            self._sequence.mark()
            finished = True
        finally:
            if not finished:
                self._take_back()
        return True

    def _scored(self, layout: Layout) -> Generator[PrefillProgress, None, np.ndarray[Any, Any]]:
        clock = self._inputs.clock
        started = clock()
        total = len(self._text.ids) - self._from
        yield self._progress(ReadProgress(0, total, None), "scoring")
        scoring = SCORERS[self.outcome.scorer].score(
            ScorerInputs(
                self._loaded, self._text.ids, self._from, layout.question, self._settings, self._draft
            )
        )
        try:
            while True:
                done = next(scoring)
                passed = clock() - started
                left = passed / done * (total - done) if done else None
                self.outcome = replace(self.outcome, scored_tokens=min(done, total), score_s=passed)
                yield self._progress(ReadProgress(0, total, left), "scoring")
        except StopIteration as end:
            scores: np.ndarray[Any, Any] = end.value
        finally:
            scoring.close()
            self._draft = None  # its cache, if nobody else holds it, goes before the target reads
            mx.clear_cache()
        passed = clock() - started
        self.outcome = replace(self.outcome, scored_tokens=total, score_s=passed)
        return scores

    def _select(self, scores: np.ndarray[Any, Any], layout: Layout) -> Selection:
        start, settings = self._from, self._settings
        if not np.isfinite(scores).all():
            raise ValueError("the scores are not numbers")
        if not SCORERS[self.outcome.scorer].propagates:
            scores = carried_tokens(scores, settings.passage_tokens)
        protected = layout.protected | layout.question
        return select(
            scores,
            protected[start:],
            start=start,
            keep_pct=settings.keep_pct,
            passage_tokens=settings.passage_tokens,
            window_tokens=largest_window(self._sequence.cache),
            latest=LATEST if layout.goes_on else 0.0,
        )

    def _read(self, chosen: Selection, layout: Layout) -> Iterator[PrefillProgress | ReadingMap]:
        kept = chosen.positions
        self.outcome = replace(self.outcome, kept_tokens=len(kept) + 1)
        yield ReadingMap(
            self._request,
            self.outcome.scorer,
            len(self._text.ids),
            len(kept) + 1,
            passages(chosen, layout),
            self._dense_s(),
        )
        model, ids, chunk = self._loaded.model, self._text.ids, self._settings.chunk_tokens
        steps = read_kept(
            model, self._sequence, ids, kept, rotations(model), chunk_tokens=chunk, clock=self._inputs.clock
        )
        yield from self._followed(steps)

    def _followed(self, steps: Iterator[ReadProgress]) -> Iterator[PrefillProgress]:
        clock, started = self._inputs.clock, 0.0
        before: int | None = None  # the first step says where the reading begins
        for step in steps:
            if before is not None:
                self._inputs.timed(step.done_tokens - before, before, clock() - started)
            read = step.done_tokens - self.outcome.reused_tokens
            self.outcome = replace(self.outcome, read_tokens=read)
            yield self._progress(step, "reading")
            before, started = step.done_tokens, clock()

    def _progress(self, step: ReadProgress, phase: PrefillPhase) -> PrefillProgress:
        outcome = self.outcome
        return PrefillProgress(
            self._request,
            step.done_tokens,
            step.total_tokens,
            outcome.reused_tokens,
            step.seconds_left,
            phase,
            outcome.scored_tokens,
            outcome.kept_tokens,
        )

    def _take_back(self) -> None:
        if self._from:
            self._sequence.truncate(self._from)
        else:
            self._sequence.clear()

    def _fall_back(self, reason: str, change: Change | None) -> None:
        self.outcome = Outcome(
            reason=reason,
            reused_tokens=self._sequence.columns.count,
            scored_tokens=self.outcome.scored_tokens,
            score_s=self.outcome.score_s,
            changes=(*self.outcome.changes, *([change] if change else [])),
        )
