"""Reads one prompt into a sequence, completely or sparsely: plan, score, select, read.

Call `plan` first, which decides and scores, then iterate `events` once. Skipped passages of earlier turns
that are relevant for this question are quoted before it.

If scoring or skipping fails, the whole prompt is read and `outcome` gives the reason; only requests that
cannot be met and exhausted memory raise. A sparse prefill that is cancelled or fails leaves the sequence as
it was after `plan`. Worker's main thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.encoder.store import Embedder
from core.errors import NotEnoughMemoryError, PromptTooLongError, reason_of
from core.events import Change, PrefillProgress, ReadingMap
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import largest_window
from core.models import memory
from core.models.loader import LoadedModel
from core.models.parts import StateReceiver
from core.prefill.forecast import PrefillClock, most_read_tokens
from core.prefill.layout import Layout, Passages
from core.prefill.plan import (
    ASKS_FOR_ALL,
    LATEST,
    NOTHING_STANDS_OUT,
    Decision,
    Selection,
    beyond,
    decide,
    dense_reason,
    excerpt,
    must_keep,
    passage_map,
    refused,
    select,
    to_quote,
)
from core.prefill.read import Positions, ReadProgress, read_kept, read_prompt
from core.prefill.scorers import SCORERS
from core.prefill.scorers.lexical import Words, stands_out, words_of
from core.prefill.scorers.scorer import Scored, ScorerInputs, ScoringDraft
from core.settings.prefill import Prefill

_DEFAULT_SCORER = "fusion"
# A snapshot ends a chunk, and an additional chunk costs about as much as reading this many tokens.
_SNAPSHOT_EVERY = 16


class PromptText(Struct, frozen=True):
    """A prompt: its ids, the question's words (empty if unknown) and a function that computes its layout.

    The last `continued_tokens` of the ids begin the answer. `branches()` returns prefix lengths that later
    prompts of the same chat probably share. `format`: the answer's syntax, None if unknown.
    """

    ids: list[int]
    asked: str
    layout: Callable[[], Layout]
    continued_tokens: int = 0
    branches: Callable[[], Sequence[int]] = tuple
    format: AnswerFormat | None = None

    def quoting(self, at: int, quoted: list[int]) -> PromptText:
        """With `quoted` before the token `at`. It is always read."""
        return replace(
            self,
            ids=[*self.ids[:at], *quoted, *self.ids[at:]],
            layout=cache(lambda: self.layout().quoting(at, len(quoted))),
            branches=lambda: [length for length in self.branches() if length <= at],
        )


class ReadingInputs(Struct, frozen=True):
    """Dependencies of a reading.

    `draft()`: a draft model of the family; raises `DraftModelError` if there is none.
    `dense_s(tokens, context_tokens)`: predicted seconds of reading `tokens` after `context_tokens` others,
    None if unknown; `timed(tokens, context_tokens, seconds)` receives the measured time of each chunk.
    `clock`: seconds. `context_tokens`: the limit of the context, half of whose free part quotations may take.
    `most_tokens`: how many tokens of the prompt the cache may hold where the prompt exceeds the context; None
    where all of it fits. `embedder`: None without a sentence encoder. `states`: receives
    the hidden states of the tokens that are read; None if no drafter uses them.
    `fitting_chunk(held, columns, wanted)`: the chunk, at most `wanted` tokens, with which the memory suffices
    to grow the cache from `held` to `columns`; raises `NotEnoughMemoryError`.
    """

    draft: Callable[[], ScoringDraft]
    dense_s: Callable[[int, int], float | None] = lambda tokens, context_tokens: None
    timed: Callable[[int, int, float], None] = lambda tokens, context_tokens, seconds: None
    clock: Callable[[], float] = time.perf_counter
    context_tokens: int = 1 << 30
    most_tokens: int | None = None
    embedder: Embedder | None = None
    states: StateReceiver | None = None
    fitting_chunk: Callable[[int, int, int], int] = lambda held, columns, wanted: wanted


class Outcome(Struct, frozen=True):
    """The result of a reading. Token counts as in `Stats`, without the prompt's last token.

    `unmatched` as in `Effective`.
    """

    sparse: bool = False
    reason: str = ""
    scorer: str = ""
    reused_tokens: int = 0
    read_tokens: int = 0
    scored_tokens: int = 0
    kept_tokens: int = 0
    score_s: float = 0.0
    read_on_tokens: int = 0
    unmatched: bool = False
    changes: tuple[Change, ...] = ()


class Reading:
    """Reads `text` into `sequence`, which may hold any context; at the end it holds all but the last id."""

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
        self._about_all = False
        self._matches: bool | None = None  # None: the question was not compared with the text
        self._scored: tuple[Passages, Scored] | None = None
        self._words: Words | None = None
        self._quoted: Positions = np.empty(0, np.int32)
        self.outcome = Outcome()
        self.progress = PrefillClock(inputs.dense_s)
        self.chunk_tokens = settings.chunk_tokens  # less once `events` finds too little memory

    @property
    def ids(self) -> list[int]:
        """The prompt; after `plan` with its quotations."""
        return self._text.ids

    @property
    def _held_tokens(self) -> int:
        """How many of the prompt's tokens the cache holds if nothing more is skipped."""
        return self._sequence.held_tokens(len(self._text.ids))

    @property
    def layout(self) -> Layout:
        return self._text.layout()

    @property
    def words(self) -> Words:
        """The terms of `ids`, computed once."""
        if self._words is None:
            self._words = words_of(self._loaded.tokenizer.convert_ids_to_tokens(self.ids))
        return self._words

    def snapshot_lengths(self, sequence: CachedSequence) -> list[int]:
        """Lengths of `ids`, ascending, at which `sequence` takes snapshots; empty if it needs none.

        Later prompts diverge from this one at a branch of the chat, at the question (when it is edited),
        after the fixed head (in another chat) or not at all (when the answer is regenerated).
        """
        if sequence.keeps_all:
            return []
        end = len(self._text.ids) - 1
        found: list[int] = []
        for length in sorted({*self.layout.borders, *self._text.branches(), end}):
            if 0 < length <= end and (not found or length - found[-1] >= _SNAPSHOT_EVERY):
                found.append(length)
        return found

    @property
    def seen(self) -> Positions:
        """int32: positions whose text the model has read, in place or in a quotation."""
        columns = self._sequence.columns
        return np.union1d(columns.places(0, columns.count), self._quoted)

    # ---- planning

    def plan(self) -> Generator[PrefillProgress, None, None]:
        """Reuse the cached prefix, score and decide. Raises `RequestError` kinds.

        Yields the progress of scoring; close it to cancel.
        """
        settings, ids = self._settings, self._text.ids
        dense = dense_reason(settings, self._text.asked)
        self._from = self._sequence.reuse(ids, whole=bool(dense))
        is_beyond = self._is_beyond()
        if is_beyond:
            decision = beyond(settings, dense, len(ids))
        else:
            # A request that seems to be about all of a text is read sparsely if a passage answers it.
            needs = "" if dense == ASKS_FOR_ALL else dense
            decision = decide(settings, needs, len(ids) - self._from, self._dense_s())
        self._about_all = dense == ASKS_FOR_ALL
        scorer = self._choose() if decision.sparse else ""
        changes: tuple[Change, ...] = ()
        if scorer == "draft-model" and self._inputs.most_tokens is not None:
            reason = "a draft model cannot read more than the context"
            changes = (Change("prefill.scorer", scorer, _DEFAULT_SCORER, reason),)
            scorer = _DEFAULT_SCORER
        self.outcome = Outcome(scorer=scorer, reused_tokens=self._sequence.columns.count, changes=changes)
        earlier = ""
        if self._sequence.skipped:
            earlier = yield from self._plan_quotation()
        if decision.sparse:
            decision = yield from self._plan_skipping(decision, scorer, is_beyond)
        outcome = self.outcome
        self.outcome = replace(
            outcome,
            sparse=decision.sparse,
            reason=f"{decision.reason}{earlier}",
            scorer=outcome.scorer if decision.sparse else "",
            changes=(*((decision.change,) if decision.change else ()), *outcome.changes),
            unmatched=self._matches is False and (decision.sparse or self._sequence.skipped > 0),
        )

    def _is_beyond(self) -> bool:
        """Whether cached and new tokens together exceed the limit.

        Then the cache is cleared, and passages are chosen for this question from the whole prompt.
        """
        most = self._inputs.most_tokens
        if most is None or self._held_tokens <= most:
            return False
        if self._from:
            self._sequence.clear()
            self._from = 0
        return True

    def _plan_skipping(
        self, decision: Decision, scorer: str, is_beyond: bool
    ) -> Generator[PrefillProgress, None, Decision]:
        """Score the new tokens. If that fails, everything is read."""
        settings = self._settings
        try:
            passages = self.layout.passages(self._from, len(self.ids), settings)
            scored = yield from self._score(scorer, passages)
            if not np.isfinite(scored.scores).all():
                raise ValueError("the scores are not numbers")
        except Exception as error:
            if memory.is_exhausted(error) or self._inputs.most_tokens is not None:
                raise
            reason = f"scoring failed ({reason_of(error)}), so all of it was read"
            return Decision(False, reason, refused(settings, reason))
        self._scored = passages, scored
        if scored.used:
            self._record_used(scored)
        # A continuation is a request that matches no passage and still does not need the whole text.
        clear = scored.stands_out or self.layout.goes_on
        self._matches = bool(self._matches) or clear
        if settings.mode == "auto" and not is_beyond and not clear:
            reason = ASKS_FOR_ALL if self._about_all else NOTHING_STANDS_OUT
            return Decision(False, reason, refused(settings, reason))
        return decision

    def _record_used(self, scored: Scored) -> None:
        """Record that another scorer than the chosen one was used, with a change if that was refused."""
        changes = self.outcome.changes
        if scored.without:
            changes += (Change("prefill.scorer", self._settings.scorer, scored.used, scored.without),)
        self.outcome = replace(self.outcome, scorer=scored.used, changes=changes)

    def _plan_quotation(self) -> Generator[PrefillProgress, None, str]:
        """Choose the skipped passages to quote; returns the end of the outcome's reason."""
        settings, layout = self._settings, self.layout
        still_skipped = f"; {self._sequence.skipped:,} earlier ones were skipped"
        question = np.flatnonzero(layout.question)
        gaps = self._sequence.columns.gaps()
        if not len(question) or layout.goes_on:  # a continuation needs no quotation
            return still_skipped
        room_tokens = (self._inputs.context_tokens - self._held_tokens) // 2
        if (most := self._inputs.most_tokens) is not None:
            room_tokens = min(room_tokens, most - self._held_tokens)
        passages = layout.passages(int(gaps[0]), int(gaps[-1]) + 1, settings)
        scorer = _DEFAULT_SCORER if settings.scorer in ("auto", "draft-model") else settings.scorer
        scored = yield from self._score(scorer, passages)
        self._matches = scored.stands_out or self._stands_out_by_words()
        if not scored.stands_out:
            return f"{still_skipped}, and nothing in them matches this question"
        # Nothing is quoted before a question that is cached, which is regenerated.
        if settings.read_on == "off" or question[0] < self._from:
            return still_skipped
        self._quoted = to_quote(self._sequence.columns, passages, scored, settings, room_tokens)
        count = len(self._quoted)
        if not count:
            return still_skipped
        quoted = excerpt(self._text.ids, self._quoted, self._loaded)
        at = int(question[0])
        self._words = self.words.shifted(at, len(quoted))
        self._text = self._text.quoting(at, quoted)
        self.outcome = replace(self.outcome, read_on_tokens=count)
        return f"{still_skipped}, {count:,} of them are quoted before the question"

    def _stands_out_by_words(self) -> bool:
        """Whether the question matches some passage of the documents, read or skipped, by its words."""
        layout = self.layout
        places = np.flatnonzero(layout.source >= 0)
        if not len(places):
            return False
        passages = layout.passages(int(places[0]), int(places[-1]) + 1, self._settings)
        _, stands = stands_out(self.words, layout.question, passages, self._loaded.word_rank)
        return stands

    def _choose(self) -> str:
        wanted = _DEFAULT_SCORER if self._settings.scorer == "auto" else self._settings.scorer
        if SCORERS[wanted].needs_draft:
            self._draft = self._inputs.draft()
        return wanted

    def _score(self, scorer: str, passages: Passages) -> Generator[PrefillProgress, None, Scored]:
        clock = self._inputs.clock
        started, before_s = clock(), self.outcome.score_s
        total = passages.end - int(passages.firsts[0])
        yield self._scoring_progress(total)
        inputs = ScorerInputs(
            *(self._loaded, self.ids, self.layout, passages, lambda: self.words, self._settings),
            *(self._draft, self._inputs.embedder, self._about_all),
        )
        scoring = SCORERS[scorer].score(inputs)
        try:
            while True:
                done = next(scoring)
                passed = clock() - started
                self.outcome = replace(
                    self.outcome, scored_tokens=min(done, total), score_s=before_s + passed
                )
                yield self._scoring_progress(total)
        except StopIteration as end:
            scored: Scored = end.value
        finally:
            scoring.close()
            self._draft = None  # frees its cache before the target reads
            mx.clear_cache()
        passed = clock() - started
        self.outcome = replace(self.outcome, scored_tokens=total, score_s=before_s + passed)
        return scored

    def _dense_s(self) -> float | None:
        """Predicted seconds of reading all new tokens; None if unknown or if the context cannot hold them."""
        if self._inputs.most_tokens is not None:
            return None
        return self._inputs.dense_s(len(self._text.ids) - self._from, self._sequence.columns.count)

    # ---- reading

    def events(self) -> Generator[PrefillProgress | ReadingMap, None, None]:
        """Read. Yields progress before the first chunk and after each; close it to cancel."""
        if self.outcome.sparse:
            try:
                if (yield from self._sparse()):
                    return
            except NotEnoughMemoryError:
                raise  # all of it would need more
            except Exception as error:
                if memory.is_exhausted(error) or self._inputs.most_tokens is not None:
                    raise
                reason = f"skipping failed ({reason_of(error)}), so all of it was read"
                self._fall_back(reason, refused(self._settings, reason))
        steps = read_prompt(
            self._loaded.model,
            self._sequence,
            self._text.ids,
            chunk_tokens=self._fit_chunk(self._held_tokens),
            snapshots=self.snapshot_lengths(self._sequence),
            states=self._inputs.states,
        )
        yield from self._followed(steps)

    def _sparse(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Returns False if no passage can be skipped."""
        layout = self.layout
        chosen = self._select(layout)
        if layout.goes_on:
            reason = f"{self.outcome.reason}; it continues the text, so most of what is read is its end"
            self.outcome = replace(self.outcome, reason=reason)
        if chosen.kept.all():
            reason = "nothing of it could be skipped: its end and its fixed parts are always read"
            self._fall_back(reason, refused(self._settings, reason) if self._settings.mode == "on" else None)
            return False
        finished = False
        self._sequence.snapshot()
        try:
            yield from self._read(chosen, layout)
            finished = True
        finally:
            if not finished:
                self._take_back()
        return True

    def _select(self, layout: Layout) -> Selection:
        assert self._scored is not None
        passages, scored = self._scored
        always_read = layout.always_read
        window_tokens = largest_window(self._sequence.cache)
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
        settings, most = self._settings, self._inputs.most_tokens
        new_tokens, lengths = passages.end - self._from, passages.lengths
        if most is None or self._held_tokens <= most:
            return settings.keep_pct
        # The last chosen passage may exceed the share by all but one of its tokens.
        always = int(lengths[must_keep(always_read, passages, window_tokens)].sum())
        held = self._sequence.columns.count + always + int(lengths.max())
        fits = 100 * (most_read_tokens(most) - held) / new_tokens
        if fits <= 0:
            raise PromptTooLongError(len(self._text.ids), self._inputs.context_tokens - 1)
        if fits < settings.keep_pct:
            others = tuple(c for c in self.outcome.changes if c.setting != "prefill.keep_pct")
            asked = "100" if len(others) < len(self.outcome.changes) else f"{settings.keep_pct:g}"
            words = (asked, f"{fits:.1f}", "more of the text does not fit the context")
            self.outcome = replace(self.outcome, changes=(*others, Change("prefill.keep_pct", *words)))
        return min(fits, settings.keep_pct)

    def _read(self, chosen: Selection, layout: Layout) -> Iterator[PrefillProgress | ReadingMap]:
        kept, ids = chosen.positions, self._text.ids
        self.outcome = replace(self.outcome, kept_tokens=len(kept) + 1)
        skipped = self._sequence.skipped + int((chosen.ends - chosen.starts)[~chosen.kept].sum())
        yield ReadingMap(
            *(self._request, self.outcome.scorer, len(ids), len(kept) + 1),
            *(passage_map(chosen, layout), self._dense_s(), len(ids) - skipped),
            self._inputs.most_tokens is None,
        )
        # At least two tokens follow each snapshot but the last: no chunk has one token.
        lengths, end = self.snapshot_lengths(self._sequence), len(ids) - 1
        steps = read_kept(
            self._loaded.model,
            self._sequence,
            ids,
            kept,
            chunk_tokens=self._fit_chunk(self._sequence.columns.count + len(kept)),
            snapshots=[*(min(length, end - 2) for length in lengths), end],
            states=self._inputs.states,
        )
        yield from self._followed(steps)

    def _fit_chunk(self, columns: int) -> int:
        """Set `chunk_tokens` to what the memory suffices for until the cache has `columns`."""
        held, wanted = self._sequence.columns.count, self._settings.chunk_tokens
        self.chunk_tokens = self._inputs.fitting_chunk(held, columns, wanted)
        if self.chunk_tokens < wanted:
            reason = "the memory does not suffice for larger chunks"
            change = Change("prefill.chunk_tokens", str(wanted), str(self.chunk_tokens), reason)
            self.outcome = replace(self.outcome, changes=(*self.outcome.changes, change))
        return self.chunk_tokens

    def _followed(self, steps: Iterator[ReadProgress]) -> Iterator[PrefillProgress]:
        """Convert `steps` to progress events and record the time of each chunk."""
        clock, started = self._inputs.clock, 0.0
        before: int | None = None  # the first step comes before anything was read
        for step in steps:
            if before is not None:
                self._inputs.timed(step.done_tokens - before, before, clock() - started)
            read = step.done_tokens - self.outcome.reused_tokens
            self.outcome = replace(self.outcome, read_tokens=read)
            outcome = self.outcome
            # The pace includes this reading's chunks, and that later chunks attend to more.
            left_s = self.progress.read(step.done_tokens, step.total_tokens, outcome.reused_tokens)
            yield PrefillProgress(
                *(self._request, step.done_tokens, step.total_tokens, outcome.reused_tokens, left_s),
                scored_tokens=outcome.scored_tokens,
                kept_tokens=outcome.kept_tokens if outcome.sparse else 0,
                fraction=self.progress.fraction,
            )
            before, started = step.done_tokens, clock()

    def _scoring_progress(self, total_tokens: int) -> PrefillProgress:
        outcome = self.outcome
        self.progress.scored(outcome.scored_tokens, total_tokens)
        return PrefillProgress(
            *(self._request, 0, total_tokens, outcome.reused_tokens),
            phase="scoring",
            scored_tokens=outcome.scored_tokens,
            fraction=self.progress.fraction,
        )

    def _take_back(self) -> None:
        if self._from:
            self._sequence.truncate(self._from)
        else:
            self._sequence.clear()

    def _fall_back(self, reason: str, change: Change | None) -> None:
        before = self.outcome
        changes = (*before.changes, *([change] if change else []))
        self.outcome = replace(
            before, sparse=False, reason=reason, scorer="", read_tokens=0, kept_tokens=0, changes=changes
        )
