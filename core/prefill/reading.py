"""Reads one prompt into a sequence, completely or sparsely: plan, score, select, read.

Call `plan` first, which decides and scores, then iterate `events` once. Skipped passages of earlier turns
that are relevant for this question are quoted before it. Of documents that were read before the question the
columns of chosen passages may be enough: then the answer has a sequence of its own, with these columns and
the question, and the one it was planned with stays as it is for later turns. So it is where only a part of
the documents was read before, too: what is read sparsely of the rest attends to chosen passages of that part.

If scoring or skipping fails, all of the prompt that was not skipped before is read, without a quotation, and
the answer gives the reason; only requests that cannot be met and exhausted memory raise. A sparse prefill
that is cancelled or fails leaves the sequence as it was after `plan`. Worker's main thread.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from math import inf
from typing import Any, Literal, Protocol

import mlx.core as mx
import numpy as np
from msgspec.structs import replace

from core.decoding.answer import Answer, DraftReader, MemoryGuard, Pace
from core.encoder.store import Embedder
from core.errors import DraftModelError, NotEnoughMemoryError, PromptTooLongError, reason_of
from core.events import PrefillProgress, ReadingMap, ReadingPace
from core.events.answer import PrefillPhase
from core.kv.mlx_lm_caches import largest_window
from core.models import memory
from core.models.prompt import offsets
from core.prefill.clock import PrefillClock
from core.prefill.forecast import chosen_passages, most_read_tokens
from core.prefill.layout import Layout, Passages, layout, unknown_layout
from core.prefill.plan import (
    ASKS_FOR_ALL,
    CHOSEN_COLUMNS,
    LATEST,
    NOTHING_STANDS_OUT,
    OF_BEGUN,
    Decision,
    Preference,
    Selection,
    attends_to_chosen,
    beyond,
    decide,
    dense_reason,
    excerpt,
    must_keep,
    passage_map,
    preference_by_size,
    select,
    to_quote,
)
from core.prefill.read import Positions, ReadProgress, ReadSteps, read_kept, read_prompt, timed_steps
from core.prefill.scorers import SCORERS
from core.prefill.scorers.scorer import Scored, ScorerInputs, ScoringDraft
from core.prefill.words import Words, stands_out, words_of

_DEFAULT_SCORER = "fusion"
# A snapshot ends a chunk, and an additional chunk costs about as much as reading this many tokens.
_SNAPSHOT_EVERY = 16
# Between two events within a chunk.
_EVENT_S = 0.4
# Of a shorter text it is known after a moment how long it takes.
_PROBED_TOKENS = 256
# Parameters of the encoder's layers, which read each piece of a text in two windows.
_ENCODER_PARAMETERS = 2 * 10_600_000


class Unmeasured:
    """The pace of a machine that was not measured."""

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


class Drafts(Protocol):
    """The draft model of the family."""

    def scoring(self, reference: str, *, drafts: bool) -> ScoringDraft:
        """The draft model `reference`; `drafts`: it drafts, too. Raises `DraftModelError`, `ModelError`."""


class Reading:
    """Reads the prompt of `answer` into its sequence; at the end that holds all of it but the last id.

    `drafts`: None without draft models; `embedder`: None without a sentence encoder; `pace`: None if not
    measured. `guard` fits chunks into the memory. `preference`: of the model; None: by its size.
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
        self._drafts = drafts
        self._embedder = embedder
        self._pace = pace or Unmeasured()
        self._guard = guard or MemoryGuard()
        self._preference = preference or preference_by_size(answer.model.info.parameters)
        self._dense = dense_reason(answer.settings.prefill, answer.prompt.asked)
        self._draft: ScoringDraft | None = None
        self._from = 0
        self._columns = False  # attends to chosen columns of what was read before
        self._matches: bool | None = None  # None: the question was not compared with the text
        self._scored: tuple[Passages, Scored] | None = None
        self._layout: Layout | None = None
        self._words: Words | None = None
        self._quoted: Positions = np.empty(0, np.int32)
        self._clock = PrefillClock(self._pace.pace)
        self._event_s = -inf  # time of the latest event
        self._passages = 0  # that are read
        self._draft_tokens = 0  # what a draft model that drafts will read

    @property
    def whole(self) -> bool:
        """Whether only a cached prefix without gaps may be reused."""
        return bool(self._dense)

    @property
    def layout(self) -> Layout:
        """The layout of the answer's `ids`, computed once."""
        if self._layout is None:
            answer, prompt = self._answer, self._answer.prompt
            if prompt.text:
                found = layout(prompt, offsets(answer.model.tokenizer, prompt))
                self._layout = found.followed_by(answer.continued_tokens)
            else:
                self._layout = unknown_layout(len(answer.ids))
        return self._layout

    @property
    def words(self) -> Words:
        """The terms of the answer's `ids`, computed once."""
        if self._words is None:
            self._words = words_of(self._answer.model.tokenizer.convert_ids_to_tokens(self._answer.ids))
        return self._words

    @property
    def seen(self) -> Positions:
        """int32: positions whose text the model has read, in place or in a quotation."""
        columns = self._answer.sequence.columns
        return np.union1d(columns.places(0, columns.count), self._quoted)

    # ---- planning

    def plan(self) -> Generator[PrefillProgress, None, None]:
        """Reuse the cached prefix, score and decide. Raises `RequestError` kinds.

        Yields the progress of scoring; close it to cancel.
        """
        answer, settings, stats = self._answer, self._answer.settings.prefill, self._answer.stats
        sequence = answer.sequence
        self._from = sequence.reuse(answer.ids, whole=self.whole)
        is_beyond = self._is_beyond()
        if is_beyond:
            decision = beyond(self._dense, len(answer.ids))
        else:
            # A request that seems to be about all of a text is read sparsely if a passage answers it.
            needs = "" if self._dense == ASKS_FOR_ALL else self._dense
            decision = decide(settings, needs, len(answer.ids) - self._from, self._dense_s())
        self._expect_reading(len(answer.ids) - 1 - self._from)
        self._expect_draft()
        stats.reused_tokens = sequence.columns.count
        stats.disk_tokens = min(sequence.loaded_columns, stats.reused_tokens)
        ahead_tokens = min(sequence.ahead_columns, stats.reused_tokens)
        sequence.loaded_columns = sequence.ahead_columns = 0
        earlier = ""
        if sequence.skipped:
            earlier = f"; {sequence.skipped:,} earlier ones were skipped"
            try:
                earlier += yield from self._plan_quotation()
            except Exception as error:
                if memory.fault(error):
                    raise
                earlier += f", and comparing them with this question failed ({reason_of(error)})"
        documents = self._documents_read()
        if decision.sparse:
            self._columns = documents == "begun"
            decision = yield from self._plan_skipping(decision, is_beyond)
            self._columns &= decision.sparse
            if self._columns:
                decision = replace(decision, reason=f"{decision.reason}; {OF_BEGUN}")
        elif documents == "read":
            self._columns = True
            reason = f"{CHOSEN_COLUMNS} ({self._preference.reason})"
            chosen = yield from self._plan_skipping(Decision(True, reason), is_beyond)
            self._columns = chosen.sparse
            decision = replace(decision, reason=chosen.reason)
        ahead = f"{ahead_tokens:,} tokens were read before the question; " if ahead_tokens else ""
        answer.sparse, answer.reading_reason = decision.sparse, f"{ahead}{decision.reason}{earlier}"
        answer.unmatched = self._matches is False and (decision.sparse or sequence.skipped > 0)
        if not (decision.sparse or self._columns):
            answer.scorer = ""
        if decision.deviates and decision.sparse:
            used = f"{settings.keep_pct:g}"
            answer.downgrade("prefill.keep_pct", used, decision.reason, asked="100")
        elif decision.deviates:
            self._refuse(decision.reason)

    def _documents_read(self) -> Literal["", "begun", "read"]:
        """How much of the documents is in the cache, if chosen columns of it may be selected.

        Where they are begun, nothing else follows in the cache: later turns need what was said.
        """
        answer, sequence, start = self._answer, self._answer.sequence, self._from
        prefill, preference = answer.settings.prefill, self._preference
        if not (attends_to_chosen(prefill, self._dense, preference, start) and sequence.can_select):
            return ""
        layout = self.layout
        documents = np.flatnonzero(layout.source >= 0)
        before = documents[documents < start]
        if not len(before) or not layout.question.any():
            return ""
        if len(before) == len(documents):
            return "read"
        return "begun" if layout.protected[int(before[-1]) + 1 : start].all() else ""

    def _is_beyond(self) -> bool:
        """Whether cached and new tokens together exceed the limit.

        Then the cache is cleared, and passages are chosen for this question from the whole prompt.
        """
        most = self._answer.most_tokens
        if most is None or self._answer.held_tokens <= most:
            return False
        if self._from:
            self._answer.sequence.clear()
            self._from = 0
        return True

    def _choose(self) -> str:
        """The scorer, for which a draft model is loaded, if it can read all of the text."""
        answer = self._answer
        wanted = answer.settings.prefill.scorer
        if wanted == "auto" or not SCORERS[wanted].needs_draft:
            return _DEFAULT_SCORER if wanted == "auto" else wanted
        if self._drafts is None:
            raise DraftModelError(f"There is no draft model for the scorer “{wanted}”.", "Choose another.")
        why_not = "a draft model cannot read more than the context"
        if answer.most_tokens is None:
            reference = answer.request.settings.draft_model.model  # also where it does not draft
            self._draft = self._drafts.scoring(reference, drafts=answer.proposer is not None)
            why_not = self._draft.loaded.why_not_read(answer.ids)
        if why_not:
            self._draft = None
            answer.downgrade("prefill.scorer", _DEFAULT_SCORER, why_not, asked=wanted)
            return _DEFAULT_SCORER
        return wanted

    def _refuse(self, reason: str) -> None:
        """Record that everything is read and the settings allow less."""
        self._answer.downgrade("prefill.mode", "off", reason, asked=self._answer.settings.prefill.mode)

    def _plan_skipping(
        self, decision: Decision, is_beyond: bool
    ) -> Generator[PrefillProgress, None, Decision]:
        """Score the new tokens, or all if columns are selected. If that fails, everything is read."""
        answer, settings = self._answer, self._answer.settings.prefill
        answer.scorer = self._choose()
        try:
            start = 0 if self._columns else self._from
            passages = self.layout.passages(start, len(answer.ids), settings)
            if decision.sparse:
                self._expect_reading(self._probably_read(passages))
            scored = yield from self._score(answer.scorer, passages)
        except Exception as error:
            if memory.fault(error) or answer.most_tokens is not None:
                raise
            reason = f"scoring failed ({reason_of(error)}), so all of it was read"
            return Decision(False, reason, deviates=True)
        self._scored = passages, scored
        if scored.used:
            answer.scorer = scored.used
            if scored.without:
                answer.downgrade("prefill.scorer", scored.used, scored.without, asked=settings.scorer)
        # A continuation is a request that matches no passage and still does not need the whole text.
        clear = scored.stands_out or self.layout.goes_on or self._is_answered_by_read_ones()
        self._matches = bool(self._matches) or clear
        if settings.mode == "auto" and not is_beyond and not clear:
            reason = ASKS_FOR_ALL if self._dense == ASKS_FOR_ALL else NOTHING_STANDS_OUT
            return Decision(False, reason, deviates=True)
        return decision

    def _plan_quotation(self) -> Generator[PrefillProgress, None, str]:
        """Choose the skipped passages to quote; returns what the reason says about them."""
        answer, settings, layout = self._answer, self._answer.settings.prefill, self.layout
        sequence = answer.sequence
        question = np.flatnonzero(layout.question)
        gaps = sequence.columns.gaps()
        if not len(question) or layout.goes_on:  # a continuation needs no quotation
            return ""
        room_tokens = (answer.context_tokens - answer.held_tokens) // 2
        if answer.most_tokens is not None:
            room_tokens = min(room_tokens, answer.most_tokens - answer.held_tokens)
        passages = layout.passages(int(gaps[0]), int(gaps[-1]) + 1, settings)
        scorer = _DEFAULT_SCORER if settings.scorer in ("auto", "draft-model") else settings.scorer
        scored = yield from self._score(scorer, passages)
        self._matches = scored.stands_out or self._stands_out_by_words()
        if not scored.stands_out:
            return ", and nothing in them matches this question"
        # Nothing is quoted before a question that is cached, which is regenerated.
        if settings.read_on == "off" or question[0] < self._from:
            return ""
        positions = to_quote(sequence.columns, passages, scored, settings, room_tokens)
        if not len(positions):
            return ""
        self._quote(int(question[0]), excerpt(answer.ids, positions, answer.model))
        self._quoted, answer.stats.read_on_tokens = positions, len(positions)
        return f", {len(positions):,} of them are quoted before the question"

    def _quote(self, at: int, quoted: list[int]) -> None:
        """Insert `quoted`, which is always read, before the token `at`."""
        answer = self._answer
        self._words = self.words.shifted(at, len(quoted))
        self._layout = self.layout.quoting(at, len(quoted))
        answer.ids[at:at] = quoted
        answer.branches = tuple(length for length in answer.branches if length <= at)

    def _stands_out_by_words(self) -> bool:
        """Whether the question matches some passage of the documents, read or skipped, by its words."""
        layout = self.layout
        places = np.flatnonzero(layout.source >= 0)
        if not len(places):
            return False
        prefill = self._answer.settings.prefill
        passages = layout.passages(int(places[0]), int(places[-1]) + 1, prefill)
        _, stands = stands_out(self.words, layout.question, passages, self._answer.model.word_rank)
        return stands

    def _is_answered_by_read_ones(self) -> bool:
        """Whether the question matches a document of which all or the beginning was read, by its words."""
        begun = bool((self.layout.source[: self._from] >= 0).any())
        return begun and not self._answer.sequence.skipped and self._stands_out_by_words()

    def _score(self, scorer: str, passages: Passages) -> Generator[PrefillProgress, None, Scored]:
        answer, stats = self._answer, self._answer.stats
        started, before_s = answer.clock(), stats.score_s
        total = passages.end - int(passages.firsts[0])
        if self._clock.pace is None and total >= _PROBED_TOKENS:
            self._clock.guess(self._pace.probe())
        self._expect_scoring(scorer)
        inputs = ScorerInputs(
            answer.model,
            answer.ids,
            self.layout,
            passages,
            self.words,
            answer.settings.prefill,
            draft=self._draft,
            embedder=self._embedder,
            about_all=self._dense == ASKS_FOR_ALL,
            clock=answer.clock,
        )
        scoring = SCORERS[scorer].score(inputs)
        computed, computed_s, before = 0.0, 0.0, (inf, 0.0)
        try:
            while True:
                step, now_s = next(scoring), answer.now()
                if step.left_tokens < before[0] < inf:
                    computed += before[0] - step.left_tokens
                    computed_s += now_s - before[1]
                before = step.left_tokens, now_s
                self._clock.scored(step.left_tokens, step.read_tokens, now_s)
                stats.scored_tokens = min(step.tokens, total)
                stats.score_s = before_s + answer.clock() - started
                yield self._scoring_progress(total)
        except StopIteration as end:
            scored: Scored = end.value
        finally:
            scoring.close()
            self._draft = None  # frees its cache before the target reads
            mx.clear_cache()
        if not np.isfinite(scored.scores).all():
            raise ValueError("the scores are not numbers")
        self._pace.scored(scorer, computed, computed_s)
        stats.scored_tokens, stats.score_s = total, before_s + answer.clock() - started
        return scored

    # ---- what is to come

    def _expect_scoring(self, scorer: str) -> None:
        """The speed of `scorer`: as measured, else that of a model of its size."""
        model, draft = self._clock.pace, self._draft
        parameters = max(1, self._answer.model.info.parameters)
        if draft is not None:
            measured = draft.pace.pace if draft.pace else None
            size = draft.loaded.info.parameters / parameters
            guess = model and ReadingPace(model.token_s * size, model.attention_s * size)
            if self._answer.proposer and draft.sequence is self._answer.proposer.sequence:
                self._clock.expect_draft(0, None, size)  # it reads for both
        else:
            token_s = self._pace.scoring_s(scorer)
            measured = None if token_s is None else ReadingPace(token_s, 0.0)
            guess = model and ReadingPace(model.token_s * _ENCODER_PARAMETERS / parameters, 0.0)
        self._clock.expect_scoring(measured, guess=guess, attends=draft is not None)

    def _expect_reading(self, tokens: float) -> None:
        self._clock.expect_reading(tokens, self._answer.sequence.columns.count)

    def _probably_read(self, passages: Passages) -> float:
        """How many of the new tokens will be read, whatever their scores: a share, and the fixed parts."""
        must = must_keep(self.layout.always_read, passages, largest_window(self._answer.sequence.cache))
        lengths, is_new = passages.lengths, passages.firsts >= self._from
        total = float(lengths[is_new].sum())
        share = self._answer.settings.prefill.keep_pct / 100 * total + float(lengths.mean()) / 2
        most = self._answer.most_tokens
        read = min(total, share + float(lengths[is_new & must].sum()))
        return read if most is None else min(read, most_read_tokens(most))

    def _expect_draft(self) -> None:
        """What a draft model that drafts will have to read, unless it reads all of it for scoring."""
        proposer, answer = self._answer.proposer, self._answer
        if proposer is not None:
            size = proposer.loaded.info.parameters / max(1, answer.model.info.parameters)
            tokens = len(answer.ids) - 1 - proposer.sequence.shared(answer.ids)
            self._clock.expect_draft(tokens, proposer.profile.pace, size)

    def _dense_s(self) -> float | None:
        """Predicted seconds of reading all new tokens; None if unknown or if the context cannot hold them."""
        if self._answer.most_tokens is not None:
            return None
        return self._pace.dense_s(len(self._answer.ids) - self._from, self._answer.sequence.columns.count)

    # ---- reading

    def events(self) -> Generator[PrefillProgress | ReadingMap, None, None]:
        """Read, with the model and then with a draft model that drafts.

        Yields progress before the first chunk of each and after each chunk; close it to cancel.
        """
        answer = self._answer
        proposer = answer.proposer_for(answer.ids)  # quotations were inserted after the plan
        if proposer is not None:
            self._draft_tokens = len(answer.ids) - 1
            self._expect_draft()
        if not ((answer.sparse or self._columns) and (yield from self._skip())):
            steps = read_prompt(
                answer.model.model,
                answer.sequence,
                answer.ids,
                chunk_tokens=self._fit_chunk(answer.held_tokens),
                snapshots=self._snapshot_lengths(),
                states=answer.head,
                clock=answer.clock,
            )
            yield from self._followed(steps)
        if proposer is not None:
            yield from self._read_by_draft(proposer)

    def _attend(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Give the answer a sequence with the columns of the chosen passages before the question."""
        answer, sequence, stats = self._answer, self._answer.sequence, self._answer.stats
        at = int(np.argmax(self.layout.question))
        if len(sequence.tokens) > at:  # of the same question, which attended to all
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
            clock=answer.clock,
        )
        yield from self._followed(steps, later_tokens=len(answer.ids) - len(before))
        if head is not None:
            head.end()  # it has read what the other sequence begins with
        chosen = self._select(self.layout)
        self._take_columns(chosen, at)
        if answer.unattended:
            stats.kept_tokens = len(chosen.positions) + 1
            yield self._map(chosen, self.layout, len(answer.ids))
        else:
            self._fall_back("all of what was read before is kept", deviates=False)
        return False

    def _take_columns(self, chosen: Selection, end: int) -> None:
        """Give the answer a sequence with the columns of the chosen passages; `end`: that of its sequence."""
        answer, kept = self._answer, chosen.positions
        selected = answer.sequence.selected(kept[kept < end])
        if selected.skipped:
            answer.sequence, answer.unattended = selected, selected.skipped

    def _skip(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Read sparsely, or select columns. Returns False if all that is left is to be read then.

        That is so after columns were selected, and if skipping failed or is not possible.
        """
        try:
            return (yield from self._sparse() if self._answer.sparse else self._attend())
        except NotEnoughMemoryError:
            raise  # all of it would need more
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
            answer.reading_reason += "; it continues the text, so most of what is read is its end"
        if chosen.kept.all():
            reason = "nothing of it could be skipped: its end and its fixed parts are always read"
            self._fall_back(reason, deviates=answer.settings.prefill.mode == "on")
            return False
        finished, planned = False, answer.sequence
        planned.snapshot()
        try:
            if self._columns:
                self._take_columns(chosen, self._from)
            yield from self._read(chosen, layout)
            finished = True
        finally:
            if not finished:
                answer.sequence, answer.unattended = planned, 0
                self._take_back()
        return True

    def _select(self, layout: Layout) -> Selection:
        assert self._scored is not None
        passages, scored = self._scored
        always_read = layout.always_read
        if self._columns and not self._answer.sparse:  # what was said since the last document
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
        new_tokens, lengths = passages.end - self._from, passages.lengths
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
            reason = "more of the text does not fit the context"
            answer.downgrade("prefill.keep_pct", f"{fits:.1f}", reason, asked=asked)
        return min(fits, keep_pct)

    def _read(self, chosen: Selection, layout: Layout) -> Iterator[PrefillProgress | ReadingMap]:
        answer, sequence = self._answer, self._answer.sequence
        kept, tokens = chosen.positions, len(answer.ids)
        answer.stats.kept_tokens = len(kept) + 1
        kept = kept[kept >= self._from]
        yield self._map(chosen, layout, answer.held_tokens - (tokens - 1 - self._from - len(kept)))
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
            dense_s=self._dense_s(),
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
        """The chunk that the memory suffices for until the cache has `columns`."""
        answer, wanted = self._answer, self._answer.settings.prefill.chunk_tokens
        fits = self._guard.chunk_tokens(answer.sequence.columns.count, columns, wanted)
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

    def _is_due(self, step: ReadProgress) -> bool:
        """Whether to tell of a step: of each chunk, and now and then within one."""
        return not step.part_tokens or self._answer.now() - self._event_s >= _EVENT_S

    def _scoring_progress(self, total_tokens: int) -> PrefillProgress:
        return self._progress(0, total_tokens, phase="scoring")

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
        if self._from:
            self._answer.sequence.truncate(self._from)
        else:
            self._answer.sequence.clear()

    def _fall_back(self, reason: str, *, deviates: bool = True) -> None:
        answer = self._answer
        answer.sparse, answer.reading_reason, answer.scorer = False, reason, ""
        answer.stats.read_tokens = answer.stats.kept_tokens = 0
        if deviates:
            self._refuse(reason)
