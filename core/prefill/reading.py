"""Reading: one prompt on its way into a sequence: plan → score → choose → read, or all of it.

`plan` first, which scores, then `events` once. What earlier turns skipped and this question makes relevant
comes first: it is inserted where it stands or, where a model cannot take that, quoted before the question.

Whatever goes wrong with skipping, everything is read instead and `outcome` says why; only requests that
cannot be met and exhausted memory are raised. A sparse prefill that does not come to its end (cancel, error)
leaves the sequence as it was after `plan`, but for what was inserted: nothing half-written. Worker's main
thread.
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

from core.encoder.store import Embedder
from core.errors import PromptTooLongError
from core.events import Change, Passage, PrefillPhase, PrefillProgress, ReadingMap
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import largest_window
from core.models.loader import LoadedModel
from core.models.rope import rotations
from core.models.runtime import memory
from core.prefill.layout import Layout, Passages
from core.prefill.plan import NOTHING_STANDS_OUT, Decision, beyond, decide, refused, why_whole
from core.prefill.read import Positions, ReadProgress, read_kept, read_prompt, read_skipped
from core.prefill.reading_map import passages
from core.prefill.reading_on import SkippedText, excerpt, skipped_text
from core.prefill.scorers.lexical import Words, stands_out, words_of
from core.prefill.scorers.registry import SCORERS
from core.prefill.scorers.scorer import Scored, ScorerInputs, ScoringDraft
from core.prefill.select import LATEST, Selection, must_keep, select
from core.settings.prefill import Prefill

_BEST = "fusion"
# Of the context that a text longer than it may fill: the rest is for what is asked later.
_FILLS = 0.75
# Where nothing ranks passages.
_PIECE_TOKENS = 32
# A snapshot ends a chunk, and a chunk more takes about as long as reading so many tokens.
_SNAPSHOT_EVERY = 16


class PromptText(Struct, frozen=True):
    """A prompt: its ids, the question in words (empty if unknown), and its layout when needed.

    The last `continued_tokens` of the ids are the beginning of the answer. `branches()` are lengths of the
    prefix that it probably shares with later prompts of the same chat.
    """

    ids: list[int]
    asked: str
    layout: Callable[[], Layout]
    continued_tokens: int = 0
    branches: Callable[[], Sequence[int]] = tuple

    def quoting(self, at: int, quoted: list[int]) -> PromptText:
        """With `quoted` before the token `at`. It is always read."""
        return replace(
            self,
            ids=[*self.ids[:at], *quoted, *self.ids[at:]],
            layout=cache(lambda: self.layout().quoting(at, len(quoted))),
            branches=lambda: [length for length in self.branches() if length <= at],
        )


class ReadingInputs(Struct, frozen=True):
    """What a reading may need of others.

    `why_no_gaps(tokens)`: why the target cannot read a prompt of that length with gaps;
    `why_no_insertion(tokens)`: why what was skipped of one cannot be inserted later.
    `draft()`: a draft model of the family; raises `DraftModelError` if there is none.
    `dense_s(tokens, context_tokens)`: how long reading all of so many tokens behind so many others takes
    here, None if nobody knows; `timed(tokens, context_tokens, seconds)` is told what a chunk took.
    `clock`: seconds. `room_tokens`: what a prompt may become longer by when passages are quoted in it.
    `most_tokens`: how much of the prompt may be held if not all of it can be, for it has more than
    `limit_tokens`. `embedder`: None where there is no sentence encoder.
    """

    why_no_gaps: Callable[[int], str]
    draft: Callable[[], ScoringDraft]
    why_no_insertion: Callable[[int], str] = lambda tokens: ""
    dense_s: Callable[[int, int], float | None] = lambda tokens, context_tokens: None
    timed: Callable[[int, int, float], None] = lambda tokens, context_tokens, seconds: None
    clock: Callable[[], float] = time.perf_counter
    room_tokens: int = 1 << 30
    most_tokens: int | None = None
    limit_tokens: int = 0
    embedder: Embedder | None = None


class Outcome(Struct, frozen=True):
    """Result of a reading. Token counts as in `Stats`, without the prompt's last token.

    `unmatched`: a part of the text stays skipped, and no passage matches the question.
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
    changes: tuple[Change, ...] = ()
    unmatched: bool = False


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
        self._scored: tuple[Passages, Scored] | None = None
        self._words: Words | None = None
        self._skipped: SkippedText | None = None
        self._skipped_scorer = ""
        self._inserted: Positions = np.empty(0, np.int32)
        self._quoted: Positions = np.empty(0, np.int32)
        self._ranked: list[Positions] = []
        self._matches: bool | None = None  # None: the question was not compared with the text
        self.outcome = Outcome()

    @property
    def ids(self) -> list[int]:
        """The prompt, after `plan` with what is quoted in it."""
        return self._text.ids

    @property
    def most_tokens(self) -> int:
        """How much of the prompt is held at most."""
        most = self._inputs.most_tokens
        return len(self._text.ids) if most is None else most

    @property
    def layout(self) -> Layout:
        """Of `ids`."""
        return self._text.layout()

    @property
    def words(self) -> Words:
        """Of `ids`."""
        return self._all_words()

    def snapshot_lengths(self, sequence: CachedSequence) -> list[int]:
        """Lengths of `ids`, ascending, at which `sequence` takes snapshots; none if it needs none.

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
        """int32: where what the model has had before it stands, be it quoted elsewhere."""
        columns = self._sequence.columns
        return np.union1d(columns.places(0, columns.count), self._quoted)

    @property
    def unread(self) -> list[Positions]:
        """What is still skipped, in passages, those likeliest to be asked for first."""
        gaps = self._sequence.columns.gaps()
        ranked = [still for at in self._ranked if len(still := at[np.isin(at, gaps)])]
        known = np.concatenate([gaps[:0], *ranked])
        others = np.setdiff1d(gaps, known)
        return [*ranked, *np.split(others, range(_PIECE_TOKENS, len(others), _PIECE_TOKENS))]

    def plan(self) -> Generator[PrefillProgress, None, None]:
        """Reuse what can be, score and decide. Raises `RequestError` kinds.

        Progress of scoring, if there is any; close it to cancel.
        """
        settings, ids = self._settings, self._text.ids
        whole = why_whole(settings, self._text.asked)
        closed_up = settings.positions != "true"
        # What was read with gaps goes on as it began, or is read anew.
        anew = self._sequence.closed_up != closed_up and self._sequence.columns.whole is not None
        self._from = self._sequence.reuse(ids, whole=bool(whole) or anew)
        if self._sequence.columns.whole is None:
            self._sequence.close_up(closed_up)
        decision = decide(settings, whole, len(ids) - self._from, self._dense_s())
        is_beyond = self._is_beyond()
        if is_beyond:
            decision = beyond(settings, whole, len(ids))
        if decision.sparse and not closed_up and (why_not := self._inputs.why_no_gaps(len(ids))):
            decision = Decision(
                False, why_not, refused(settings, f"{self._loaded.info.name} cannot skip: {why_not}")
            )
        scorer = self._choose() if decision.sparse else ""
        changes: tuple[Change, ...] = ()
        if scorer == "draft-model" and self._inputs.most_tokens is not None:
            reason = "a draft model cannot read more than the context"
            changes = (Change("prefill.scorer", scorer, _BEST, reason),)
            scorer = _BEST
        self.outcome = Outcome(scorer=scorer, reused_tokens=self._sequence.columns.count, changes=changes)
        earlier = ""
        if self._sequence.skipped:
            earlier = yield from self._plan_reading_on()
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

    def _plan_skipping(
        self, decision: Decision, scorer: str, is_beyond: bool
    ) -> Generator[PrefillProgress, None, Decision]:
        """Score what is new. Whatever goes wrong with it, everything is read."""
        settings = self._settings
        try:
            passages = self.layout.passages(self._from, len(self.ids), settings)
            scored = yield from self._score(scorer, passages)
            if not np.isfinite(scored.scores).all():
                raise ValueError("the scores are not numbers")
        except Exception as error:
            if memory.is_exhausted(error) or self._inputs.most_tokens is not None:
                raise
            reason = f"scoring failed ({type(error).__name__}: {error}), so all of it was read"
            return Decision(False, reason, refused(settings, reason))
        self._scored = passages, scored
        if scored.used:
            self._uses_instead(scored)
        # Where a text just goes on, nothing has to stand out.
        clear = scored.stands_out or self.layout.goes_on
        self._matches = bool(self._matches) or clear
        if settings.mode == "auto" and not is_beyond and not clear:
            return Decision(False, NOTHING_STANDS_OUT, refused(settings, NOTHING_STANDS_OUT))
        return decision

    def _uses_instead(self, scored: Scored) -> None:
        """Record that another scorer than the chosen one was used, and why if that was refused."""
        changes = self.outcome.changes
        if scored.without:
            changes += (Change("prefill.scorer", self._settings.scorer, scored.used, scored.without),)
        self.outcome = replace(self.outcome, scorer=scored.used, changes=changes)

    def events(self) -> Generator[PrefillProgress | ReadingMap, None, None]:
        """Read. Progress before the first piece of work and after each; close it to cancel."""
        if len(self._inserted):
            yield from self._insert()
        if self.outcome.sparse:
            try:
                if (yield from self._sparse()):
                    return
            except Exception as error:
                if memory.is_exhausted(error) or self._inputs.most_tokens is not None:
                    raise
                reason = f"skipping failed ({type(error).__name__}: {error}), so all of it was read"
                self._fall_back(reason, refused(self._settings, reason))
        yield from self._whole()

    def _is_beyond(self) -> bool:
        """Whether what is held and what is new is more than may be held.

        Then what was read for other questions makes room: passages are chosen anew.
        """
        most = self._inputs.most_tokens
        if most is None or self._sequence.columns.count + len(self._text.ids) - self._from <= most:
            return False
        if self._from:
            self._sequence.clear()
            self._sequence.close_up(True)
            self._from = 0
        return True

    def _plan_reading_on(self) -> Generator[PrefillProgress, None, str]:
        """Whether and how what earlier turns skipped is read now; returns the end of the outcome's reason."""
        settings, layout = self._settings, self.layout
        asks = np.flatnonzero(layout.question)
        gaps = self._sequence.columns.gaps()
        # The same question again, or one that looks for nothing in the text: what was read for it is there.
        if not len(asks) or asks[0] < self._from or layout.goes_on or settings.read_on == "off":
            return self._stays_skipped()
        why_quoted = "" if settings.read_on == "quote" else self._why_no_insertion()
        quotes = settings.read_on == "quote" or bool(why_quoted)
        room_tokens = self._inputs.room_tokens if quotes else len(self._text.ids)
        if (most := self._inputs.most_tokens) is not None:
            held_tokens = self._sequence.columns.count + len(self._text.ids) - self._from
            room_tokens = min(room_tokens, most - held_tokens)
        passages = layout.passages(int(gaps[0]), int(gaps[-1]) + 1, settings)
        scorer = _BEST if settings.scorer in ("auto", "draft-model") else settings.scorer
        scored = yield from self._score(scorer, passages)
        self._matches = scored.stands_out or self._stands_out_by_words()
        text = skipped_text(self._sequence.columns, passages, scored, settings, room_tokens)
        self._skipped = text
        self._skipped_scorer = scored.used or scorer
        self._ranked = text.ranked
        if not len(text.chosen):
            return self._stays_skipped()
        if quotes:
            self._quoted = text.chosen
            quoted = excerpt(self._text.ids, text.chosen, self._loaded)
            at = int(asks[0])
            self._words = self._all_words().shifted(at, len(quoted))
            self._text = self._text.quoting(at, quoted)
        else:
            self._inserted = text.chosen
        count = len(text.chosen)
        how = f"{count:,} of them are {'quoted before the question' if quotes else 'read now'}"
        changes = self.outcome.changes
        # Closed up and quoted belong together: what is chosen automatically was not refused.
        if why_quoted and not (settings.read_on == "auto" and self._sequence.closed_up):
            changes += (Change("prefill.read_on", settings.read_on, "quote", why_quoted),)
        self.outcome = replace(self.outcome, changes=changes, read_on_tokens=count)
        return self._stays_skipped(how)

    def _stands_out_by_words(self) -> bool:
        """Whether the question matches some passage of the documents, read or skipped, by its words."""
        layout = self.layout
        places = np.flatnonzero(layout.source >= 0)
        if not len(places):
            return False
        passages = layout.passages(int(places[0]), int(places[-1]) + 1, self._settings)
        rank = self._loaded.word_rank
        return stands_out(self._all_words(), layout.question, passages, rank)

    def _why_no_insertion(self) -> str:
        if self._sequence.closed_up:
            return "between passages that are closed up there is no place"
        why_not = self._inputs.why_no_insertion(len(self._text.ids))
        return f"{self._loaded.info.name}: {why_not}" if why_not else ""

    def _stays_skipped(self, but: str = "") -> str:
        """What the outcome's reason says of what earlier turns skipped."""
        return f"; {self._sequence.skipped:,} earlier ones were skipped{', ' if but else ''}{but}"

    def _insert(self) -> Iterator[PrefillProgress | ReadingMap]:
        """Read what was skipped and matters now. Whatever goes wrong with it, it stays skipped."""
        text = self._skipped
        assert text is not None
        yield self._map(self._earlier(), len(self._inserted), self._skipped_scorer)
        model, chunk = self._loaded.model, self._settings.chunk_tokens
        steps = read_skipped(
            model,
            self._sequence,
            self._inserted,
            rotations(model),
            chunk_tokens=chunk,
            clock=self._inputs.clock,
        )
        try:
            yield from self._followed(
                steps, following_tokens=0 if self.outcome.sparse else len(self._text.ids) - 1 - self._from
            )
        except Exception as error:
            if memory.is_exhausted(error):
                raise
            reason = f"reading on failed ({type(error).__name__}: {error}), so it stays skipped"
            change = Change("prefill.read_on", self._settings.read_on, "off", reason)
            self._inserted = self._inserted[:0]
            self.outcome = replace(
                self.outcome,
                reason=f"{self.outcome.reason}; {reason}",
                read_on_tokens=0,
                changes=(*self.outcome.changes, change),
            )

    def _earlier(self) -> tuple[Passage, ...]:
        """What earlier turns skipped in part, for the map; empty if nothing more of it is read."""
        text = self._skipped
        if text is None or not len(self._inserted):
            return ()
        found = passages(text.selection, self.layout)
        return tuple(
            replace(passage, earlier=passage.kept and not now) for passage, now in zip(found, text.now)
        )

    def _dense_s(self) -> float | None:
        """How long reading all that is new would take, if that is known."""
        return self._inputs.dense_s(len(self._text.ids) - self._from, self._sequence.columns.count)

    def _all_words(self) -> Words:
        """The terms of `ids`, computed once."""
        if self._words is None:
            self._words = words_of(self._loaded.tokenizer.convert_ids_to_tokens(self.ids))
        return self._words

    def _choose(self) -> str:
        wanted = _BEST if self._settings.scorer == "auto" else self._settings.scorer
        if SCORERS[wanted].needs_draft:
            self._draft = self._inputs.draft()
        return wanted

    def _whole(self) -> Iterator[PrefillProgress]:
        steps = read_prompt(
            self._loaded.model,
            self._sequence,
            self._text.ids,
            chunk_tokens=self._settings.chunk_tokens,
            snapshots=self.snapshot_lengths(self._sequence),
            clock=self._inputs.clock,
        )
        yield from self._followed(steps)

    def _sparse(self) -> Generator[PrefillProgress | ReadingMap, None, bool]:
        """Returns False if there is nothing to skip."""
        layout = self.layout
        chosen = self._select(layout)
        if layout.goes_on:
            reason = f"{self.outcome.reason}; it goes on from the end, so most of what is read is the end"
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

    def _score(self, scorer: str, passages: Passages) -> Generator[PrefillProgress, None, Scored]:
        clock = self._inputs.clock
        started, before_s = clock(), self.outcome.score_s
        total = passages.end - int(passages.firsts[0])
        yield self._progress(ReadProgress(0, total, None), "scoring")
        inputs = ScorerInputs(
            *(self._loaded, self.ids, self.layout, passages, self._all_words, self._settings),
            *(self._draft, self._inputs.embedder),
        )
        scoring = SCORERS[scorer].score(inputs)
        try:
            while True:
                done = next(scoring)
                passed = clock() - started
                left = passed / done * (total - done) if done else None
                self.outcome = replace(
                    self.outcome, scored_tokens=min(done, total), score_s=before_s + passed
                )
                yield self._progress(ReadProgress(0, total, left), "scoring")
        except StopIteration as end:
            scored: Scored = end.value
        finally:
            scoring.close()
            self._draft = None  # its cache, if nobody else holds it, goes before the target reads
            mx.clear_cache()
        passed = clock() - started
        self.outcome = replace(self.outcome, scored_tokens=total, score_s=before_s + passed)
        return scored

    def _select(self, layout: Layout) -> Selection:
        assert self._scored is not None
        passages, scored = self._scored
        protected = layout.protected | layout.question
        window_tokens = largest_window(self._sequence.cache)
        chosen = select(
            scored.scores,
            protected,
            passages,
            keep_pct=self._keep_pct(protected, passages, window_tokens),
            window_tokens=window_tokens,
            latest=LATEST if layout.goes_on else 0.0,
        )
        self._ranked += chosen.skipped
        return chosen

    def _keep_pct(self, protected: np.ndarray[Any, Any], passages: Passages, window_tokens: int) -> float:
        """As set, or less if no more than that can be held beside what is always read."""
        settings, most = self._settings, self._inputs.most_tokens
        new_tokens, lengths = passages.end - self._from, passages.lengths
        if most is None or self._sequence.columns.count + new_tokens <= most:
            return settings.keep_pct
        # The last passage that is chosen may exceed the share by all of it but a token.
        always = int(lengths[must_keep(protected, passages, window_tokens)].sum())
        held = self._sequence.columns.count + always + int(lengths.max())
        fits = 100 * (_FILLS * most - held) / new_tokens
        if fits <= 0:
            raise PromptTooLongError(len(self._text.ids), self._inputs.limit_tokens)
        if fits < settings.keep_pct:
            others = tuple(c for c in self.outcome.changes if c.setting != "prefill.keep_pct")
            asked = "100" if len(others) < len(self.outcome.changes) else f"{settings.keep_pct:g}"
            words = (asked, f"{fits:.1f}", "more of the text does not fit the context")
            self.outcome = replace(self.outcome, changes=(*others, Change("prefill.keep_pct", *words)))
        return min(fits, settings.keep_pct)

    def _read(self, chosen: Selection, layout: Layout) -> Iterator[PrefillProgress | ReadingMap]:
        kept = chosen.positions
        self.outcome = replace(self.outcome, kept_tokens=len(kept) + 1)
        new = passages(chosen, layout)
        earlier = self._earlier()
        if earlier:
            earlier += (Passage(earlier[-1].end, self._from, True, 0.0, earlier=True),)
        yield self._map((*earlier, *new), len(self._inserted) + len(kept) + 1, self.outcome.scorer)
        model, ids, chunk = self._loaded.model, self._text.ids, self._settings.chunk_tokens
        # At least two tokens follow each snapshot but the last: no chunk has one token.
        lengths, end = self.snapshot_lengths(self._sequence), len(ids) - 1
        steps = read_kept(
            model,
            self._sequence,
            ids,
            kept,
            rotations(model),
            chunk_tokens=chunk,
            snapshots=[*(min(length, end - 2) for length in lengths), end],
            clock=self._inputs.clock,
        )
        yield from self._followed(steps)

    def _map(self, of: tuple[Passage, ...], read_tokens: int, scorer: str) -> ReadingMap:
        prompt_tokens, held = len(self._text.ids), self._sequence
        # What is quoted is new, like the question; what is inserted comes on top.
        skipped = held.skipped + sum(p.end - p.start for p in of if not p.kept and p.start >= self._from)
        return ReadingMap(
            *(self._request, scorer, prompt_tokens, read_tokens, of, self._dense_s()),
            prompt_tokens - skipped if held.closed_up else prompt_tokens,
            self._inputs.most_tokens is None,
        )

    def _followed(
        self, steps: Iterator[ReadProgress], following_tokens: int = 0
    ) -> Iterator[PrefillProgress]:
        """The steps as progress, with so many tokens to be read behind them."""
        clock, started = self._inputs.clock, 0.0
        before: int | None = None  # the first step says where the reading begins
        for step in steps:
            if before is not None:
                self._inputs.timed(step.done_tokens - before, before, clock() - started)
            read = step.done_tokens - self.outcome.reused_tokens
            self.outcome = replace(self.outcome, read_tokens=read)
            step = _followed_by(step, following_tokens)
            # By the pace, which knows that later chunks look back on more. This reading's chunks are in it.
            left_tokens = step.total_tokens - step.done_tokens
            expected_s = self._inputs.dense_s(left_tokens, step.done_tokens)
            if left_tokens and expected_s is not None:
                step = replace(step, seconds_left=expected_s)
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
            self._chosen_tokens(),
        )

    def _chosen_tokens(self) -> int:
        """How many tokens of all that could be read now will be; 0 where that is all of them."""
        new = self.outcome.kept_tokens if self.outcome.sparse else len(self._text.ids) - self._from
        return len(self._inserted) + new if self.outcome.sparse or len(self._inserted) else 0

    def _take_back(self) -> None:
        if self._from:
            self._sequence.truncate(self._from)
        else:
            self._sequence.clear()

    def _fall_back(self, reason: str, change: Change | None) -> None:
        before = self.outcome
        self.outcome = replace(
            before,
            sparse=False,
            reason=reason,
            scorer="",
            read_tokens=before.read_on_tokens if len(self._inserted) else 0,
            kept_tokens=0,
            changes=(*before.changes, *([change] if change else [])),
        )


def _followed_by(step: ReadProgress, tokens: int) -> ReadProgress:
    """`step` with so many more to read behind it, at the same pace."""
    left, ahead = step.seconds_left, step.total_tokens - step.done_tokens
    if left is not None and tokens:
        left = left * (ahead + tokens) / ahead if ahead else None
    return ReadProgress(step.done_tokens, step.total_tokens + tokens, left)
