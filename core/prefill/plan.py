"""Plans how a prompt is read: densely or sparsely, and why; which passages; which are quoted later.

`Planning` makes a `ReadingPlan` of the decisions and scores below, which are pure except for the tokenizer in
`excerpt`. It changes only the cached sequence, which it cuts to the prefix that is reused.

Decisions at three moments. Before the cache is looked up: must every token be read at any cost
(`dense_reason`)? Then only a prefix without gaps may be reused. After it, when the number of new tokens is
known: would reading all of them take too long (`decide`)? If not, and the documents were read before: does
the model answer better from a part of them (`attends_to_chosen`)? After scoring for either: does a passage
match the question (`Scored.stands_out`)?

`auto` reads everything where a request needs the whole text, where that is quick, and where no passage
matches.

Requests about all of a text (“how many invoices are open?”) are recognised by their words: they name things
of the text, so that some passage scores high, and fail at any share below all of it (the SpecPrefill paper;
RULER: common words 96.6 → 11.8%). Requests for the whole that name nothing in it (sum up, translate,
proofread) need no words here: no passage matches them, which the scorers measure. A false alarm costs time.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from functools import cached_property
from math import inf
from typing import Any, Literal, Protocol

import mlx.core as mx
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.decoding.answer import Answer, Pace
from core.encoder.store import Embedder
from core.errors import DraftModelError, reason_of
from core.events import FIRST_IMAGE_ROW, Change, Passage, ReadingPace
from core.kv.mlx_lm_caches import largest_window
from core.kv.positions import Columns
from core.models import memory
from core.models.loader import LoadedModel
from core.prefill.forecast import PrefillClock, most_read_tokens
from core.prefill.layout import Layout, Passages, layout, unknown_layout
from core.prefill.read import Positions
from core.prefill.scorers import SCORERS
from core.prefill.scorers.scorer import Scored, ScorerInputs, ScoringDraft
from core.prefill.words import Words, stands_out, words_of
from core.prompt import encode, inner_of, offsets
from core.settings.prefill import Prefill

# "All", "whole", "how many", "how often". Words that are common in another language below are left out.
_SPREAD_WORDS = (
    # English
    r"every(?:thing)? | each | all | entire(?:ty)? | whole | complete(?:ly)? | full(?:y)?",
    r"how\s+(?:many|often) | count(?:s|ing)? | number\s+of | most\s+(?:common|frequent|often)",
    r"frequenc(?:y|ies) | exhaustive(?:ly)? | line\s+by\s+line | word\s+for\s+word | verbatim",
    # German
    r"jede[rsnm]? | alle[smnr]? | sämtliche\w* | ganze[rsnm]? | gesamte\w* | vollständig\w* | komplett\w*",
    r"wie\s*viele? | wie\s+oft | zähle?n? | anzahl | häufigste\w* | wörtlich",
    # French
    r"chaque | tou(?:te?)?s? | entier\w* | complet\w* | intégral\w* | combien | compte[rz]? | nombre\s+de",
    # Spanish and Portuguese
    r"cada | tod[oa]s | toda | todo\s+(?:el|lo|o|este|esse) | enter[oa] | complet[oa]s? | cuánt[oa]s",
    r"cuenta | contar | número\s+de | inteir[oa] | quant[oa]s | conte",
    # Italian
    r"ogni | tutt[oiae] | inter[oa] | quant[ie] | conta(?:re)? | numero\s+di",
    # Dutch
    r"elke? | alles | allen | hele | volledige? | hoeveel | tellen | aantal",
    # Russian
    r"кажд\w+ | вс[её] | всех | весь | всего | полность\w+ | сколько",
    r"посчитай\w*",
)
# Scripts without spaces between words: all, every, how many, count.
_SPREAD_UNSPACED = (
    r"所有|全部|每[个個一]|整[个個篇]|完整|多少|几[个次]|幾[個次]|统计|統計|逐[字行]",
    r"すべて|全て|全部|全体|各々|それぞれ|いくつ|何[回個件人]|数え|一字一句",
    r"모든|모두|전부|전체|각각|몇\s*(?:개|번|명)|세어",
)
_SPREAD = re.compile(
    rf"\b(?:{'|'.join(_SPREAD_WORDS)})\b | {'|'.join(_SPREAD_UNSPACED)}", re.IGNORECASE | re.VERBOSE
)


def needs_every_token(question: str) -> bool:
    return _SPREAD.search(question) is not None


# ---- the decisions


ASKS_FOR_ALL = "this asks for the whole document, so all of it was read"
CHOSEN_COLUMNS = "the answer attends only to matching passages, as this model answers better from these"
OF_BEGUN = "of the text read before, the answer attends only to matching passages"
NOTHING_STANDS_OUT = "nothing in the text stands out for this question, so all of it was read"


class Decision(Struct, frozen=True):
    """Whether to read sparsely, and the reason in words. `deviates`: the settings say otherwise."""

    sparse: bool
    reason: str
    deviates: bool = False


def dense_reason(settings: Prefill, question: str) -> str:
    """The reason why every token must be read; empty if passages may be skipped."""
    if settings.mode == "off":
        return "sparse prefill is off"
    if settings.keep_pct >= 100:
        return "all of the text is kept"
    if settings.mode == "auto" and needs_every_token(question):
        return ASKS_FOR_ALL  # unless scoring finds a passage that answers it
    return ""


def beyond(dense: str, prompt_tokens: int) -> Decision:
    """The decision for a prompt longer than the context: the passages that fit are read."""
    reason = f"{prompt_tokens:,} tokens are more than the context takes, so the passages that fit are read"
    return Decision(True, reason, bool(dense))


def decide(settings: Prefill, dense: str, new_tokens: int, dense_s: float | None = None) -> Decision:
    """`dense` is the result of `dense_reason`; `new_tokens` are not in the cache yet.

    `dense_s`: predicted seconds of reading all of them, None if unknown.
    """
    quick = settings.is_quick(new_tokens, dense_s)
    if dense:
        # A prompt that is quick to read would have been read completely anyway.
        return Decision(False, dense, settings.mode == "auto" and settings.keep_pct < 100 and not quick)
    takes = "" if dense_s is None else f", about {dense_s:.0f} s to read whole"
    if settings.mode == "auto" and quick:
        return Decision(False, f"{new_tokens:,} new tokens are quickly read")
    is_on = settings.mode == "on"
    return Decision(True, "sparse prefill is on" if is_on else f"{new_tokens:,} tokens are new{takes}")


# Smaller models answer better from chosen passages than from all of a text that they have read, and, if they
# have read it, from the columns of these passages (docs/sparse-prefill.md).
_LEAST_PARAMETERS = 1_000_000_000


class Preference(Struct, frozen=True):
    """Whether a model answers better from `passages` read alone than from all of a long text, and from their
    `columns` than from all columns of a text that it has read. `reason`: the evidence.
    """

    passages: bool
    columns: bool
    reason: str = ""


def preference_by_size(parameters: int) -> Preference:
    """The preference of a model that was not tried."""
    is_small = parameters < _LEAST_PARAMETERS
    return Preference(is_small, is_small, "by its size")


def may_skip(settings: Prefill) -> bool:
    """Whether the settings let Draftlight choose how much of a long text is read."""
    return settings.mode == "auto" and settings.keep_pct < 100


def attends_to_chosen(settings: Prefill, dense: str, preference: Preference, read_tokens: int) -> bool:
    """Whether the question attends only to chosen passages of `read_tokens` that were read before it.

    `dense` is the result of `dense_reason`.
    """
    is_long = read_tokens >= settings.threshold_tokens
    return not dense and may_skip(settings) and preference.columns and is_long


# ---- the selection of passages
#
# Always kept: the first passage, passages with a token that is always read (`Layout.always_read`), and
# passages that reach into the last tokens of a sliding window's length. Then the best of the others, until
# these have keep · M tokens (the SpecPrefill paper has ⌈keep · M ÷ passage⌉ passages of one length). For a
# continuation, `LATEST` of these tokens are the last ones, whatever their score.
#
# Passages that are always kept don't count towards the share: they would use up a third of 20% of 8,000
# tokens, and perplexity of text that continues was 1.15 times that of a dense reading instead of 1.07
# (notes/prefill.md).


Array = np.ndarray[Any, Any]

# A longer end predicts a continuation better than passages from everywhere; a quarter remains for the
# passages that it refers to (notes/prefill.md).
LATEST = 0.75


class Selection(Struct, frozen=True):
    """Passage i is tokens `starts[i]` to `ends[i]` (end-exclusive) of the prompt; bool `kept`, float32
    `scores` 0 to 1. `always_tokens` are in passages that are kept whatever their score.
    """

    starts: Array
    ends: Array
    kept: Array
    scores: Array
    always_tokens: int = 0

    @property
    def positions(self) -> Array:
        """int32, ascending: the positions to read, without the prompt's last one."""
        chosen = [
            np.arange(a, b, dtype=np.int32) for a, b in zip(self.starts[self.kept], self.ends[self.kept])
        ]
        return np.concatenate(chosen)[:-1]


def select(
    scores: Array,
    always_read: Array,
    passages: Passages,
    *,
    keep_pct: float,
    window_tokens: int = 0,
    latest: float = 0.0,
) -> Selection:
    """`scores` has one value a passage, on any scale; `always_read` (bool) one a token of the prompt.

    `passages` end where the prompt ends. `latest`, 0 to 1: the part of the share that the last tokens get.
    """
    firsts, lengths = passages.firsts, passages.lengths
    must = must_keep(always_read, passages, window_tokens)
    share = keep_pct / 100 * float(lengths.sum())
    kept = must.copy()
    free = np.flatnonzero(~must)
    kept[_filling(free[::-1], lengths, latest * share)] = True
    left = share - float(lengths[kept & ~must].sum())
    best = np.argsort(-scores[~kept], kind="stable")
    kept[_filling(np.flatnonzero(~kept)[best], lengths, left)] = True
    return Selection(firsts, firsts + lengths, kept, _shown(scores, must), int(lengths[must].sum()))


def must_keep(always_read: Array, passages: Passages, window_tokens: int = 0) -> Array:
    """bool, one a passage: whether it is read whatever its score."""
    firsts, end = passages.firsts, passages.end
    must = np.add.reduceat(always_read[:end].astype(np.int32), firsts) > 0
    must[0] = True
    if window_tokens:
        must |= firsts + passages.lengths > end - window_tokens
    return np.asarray(must)


def _filling(order: Array, lengths: Array, tokens: float) -> Array:
    """The first of the passages `order` that together have at least `tokens` tokens."""
    before = np.cumsum(lengths[order]) - lengths[order]
    return np.asarray(order[before < tokens - 1e-6])


def _shown(scores: Array, must: Array) -> Array:
    """float32, 0 to 1; 1 is the best passage among those that are not always kept."""
    earned = scores[~must] if not must.all() else scores
    low, high = float(earned.min(initial=0.0)), float(earned.max(initial=0.0))
    shown = np.clip((scores - low) / (high - low), 0.0, 1.0) if high > low else np.zeros_like(scores)
    return np.asarray(shown, np.float32)


def passage_map(selection: Selection, layout: Layout) -> tuple[Passage, ...]:
    """The passages of `selection`, each in the document that most of its tokens belong to."""
    return tuple(
        layout.passage(int(start), int(end), kept=bool(kept), score=round(float(score), 4))
        for start, end, kept, score in zip(selection.starts, selection.ends, selection.kept, selection.scores)
    )


# ---- later turns
#
# At each turn the new question scores the passages between the first and the last skipped token. Those that a
# fresh sparse reading would choose and that no turn has read are relevant; the best are quoted before the
# question, up to a limit. A draft model does not score them, as it would have to read the text that is to be
# skipped.

# The most that one turn quotes, as a share of the tokens that a fresh sparse reading would choose.
_LIMIT = 0.5
# Separates quoted passages, in any language.
_LEFT_OUT = "\n[…]\n"
_AROUND_QUOTE_TOKENS = 8


def to_quote(
    columns: Columns, passages: Passages, scored: Scored, settings: Prefill, room_tokens: int
) -> Positions:
    """int32, ascending: the skipped positions that are relevant for the question that scored `passages`.

    `columns` name the positions that were read; `passages` reach from the first skipped token to the last.
    The quotation takes at most `room_tokens`.
    """
    firsts, lengths = passages.firsts, passages.lengths
    skipped = np.zeros(passages.end, dtype=np.bool_)
    skipped[columns.gaps()] = True
    left = np.add.reduceat(skipped.astype(np.int32), firsts)
    best = np.argsort(-scored.scores, kind="stable")
    wanted = settings.keep_pct / 100 * float(lengths.sum())
    relevant = best[np.cumsum(lengths[best]) - lengths[best] < wanted]
    relevant = relevant[left[relevant] > 0]
    if not scored.stands_out or not len(relevant):
        return np.empty(0, np.int32)
    spent = np.cumsum(left[relevant] + _AROUND_QUOTE_TOKENS)
    limit = _LIMIT * wanted + _AROUND_QUOTE_TOKENS * np.arange(1, len(relevant) + 1)
    chosen = np.zeros(len(firsts), dtype=np.bool_)
    chosen[relevant[(spent - left[relevant] < limit) & (spent <= max(0, room_tokens))]] = True
    in_chosen = np.zeros(passages.end, dtype=np.bool_)
    in_chosen[firsts[0] :] = np.repeat(chosen, lengths)
    return np.flatnonzero(skipped & in_chosen).astype(np.int32)


def excerpt(ids: Sequence[int], positions: Positions, loaded: LoadedModel) -> list[int]:
    """Token ids of a text that quotes the passages at `positions` of `ids`, with marked gaps.

    All of it is content: the text of a control token remains text. Raises `RequestError` like `encode`.
    """
    tokenizer = loaded.tokenizer
    runs = np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1)
    texts = (tokenizer.decode([ids[at] for at in run]).strip() for run in runs)
    quoted = f"{_LEFT_OUT}{_LEFT_OUT.join(texts)}{_LEFT_OUT}\n".lstrip("\n")
    return encode(inner_of(tokenizer), quoted, [(0, len(quoted))], loaded.info.vocabulary).ids


# ---- the plan of a prompt

_DEFAULT_SCORER = "fusion"
# A shorter text is not timed first: it is read in a moment.
_PROBED_TOKENS = 256
# Parameters of the encoder's layers, which read each piece of a text in two windows.
_ENCODER_PARAMETERS = 2 * 10_600_000


class Drafts(Protocol):
    """The draft model of the family."""

    def scoring(self, reference: str, *, drafts: bool) -> ScoringDraft:
        """The draft model `reference`; `drafts`: it drafts, too. Raises `DraftModelError`, `ModelError`."""


class PromptText:
    """The ids of a prompt, with their layout and their terms, each computed once.

    `branches`: lengths of prefixes, as in `Answer`; `quoted`: int32, the positions that are quoted in it.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.ids: Sequence[int] = answer.ids
        self.branches = answer.branches
        self.quoted: Positions = np.empty(0, np.int32)

    @cached_property
    def layout(self) -> Layout:
        answer, prompt = self._answer, self._answer.prompt
        if not prompt.text:
            return unknown_layout(len(self.ids))
        found = layout(prompt, offsets(answer.model.tokenizer, prompt))
        return found.followed_by(answer.continued_tokens)

    @cached_property
    def words(self) -> Words:
        is_row = [token >= FIRST_IMAGE_ROW for token in self.ids]  # the row of an image, which has no words
        texts = [0 if row else token for token, row in zip(self.ids, is_row)]
        pieces = self._answer.model.tokenizer.convert_ids_to_tokens(texts)
        return words_of(["" if row else piece for piece, row in zip(pieces, is_row)])

    def quoting(self, positions: Positions, at: int) -> PromptText:
        """The text with a quotation of `positions`, which is always read, before the token `at`."""
        found, quoted = PromptText(self._answer), excerpt(self.ids, positions, self._answer.model)
        found.ids = [*self.ids[:at], *quoted, *self.ids[at:]]
        found.branches = tuple(length for length in self.branches if length <= at)
        found.words = self.words.shifted(at, len(quoted))
        found.layout = self.layout.quoting(at, len(quoted))
        found.quoted = positions
        return found


class ReadingPlan(Struct, frozen=True):
    """How a prompt is read, and why.

    - `text`: the prompt with its quotation.
    - `start`: length of the reused prefix. `sparse`: passages after it are skipped. `columns`: the answer
      attends to chosen passages of the text that was read before.
    - `scored`: passages with their scores, from which passages or columns are chosen; None if neither.
    - `reason`: why. `ahead`, `earlier`: phrases about tokens that were read before the question, and
      skipped in earlier turns. `scorer`, `unmatched`: as in `Effective`. `changes`: settings that
      were not applied.
    """

    text: PromptText
    start: int
    sparse: bool
    columns: bool
    scored: tuple[Passages, Scored] | None
    ahead: str
    reason: str
    earlier: str
    scorer: str
    unmatched: bool
    changes: tuple[Change, ...]

    def reading_reason(self, instead: str = "") -> str:
        """As in `Effective`; `instead` replaces the decision's reason if the plan was not carried out."""
        return f"{self.ahead}{instead or self.reason}{self.earlier}"


class Planning:
    """Plans the reading of a prompt; call `plan` once. `dense`: why all of it must be read, or empty."""

    def __init__(
        self,
        answer: Answer,
        clock: PrefillClock,
        pace: Pace,
        drafts: Drafts | None,
        embedder: Embedder | None,
        preference: Preference,
    ) -> None:
        self._answer = answer
        self._clock = clock
        self._pace = pace
        self._drafts = drafts
        self._embedder = embedder
        self._preference = preference
        self.dense = dense_reason(answer.settings.prefill, answer.prompt.asked)
        self._draft: ScoringDraft | None = None
        self._from = 0
        self._scorer = ""
        self._scored: tuple[Passages, Scored] | None = None
        self._matches: bool | None = None  # None: the question was not compared with the text
        self._changes: list[Change] = []

    def plan(self) -> Generator[int, None, ReadingPlan]:
        """Reuse the cached prefix, score and decide. Raises `RequestError` kinds.

        Yields after each step of scoring how many tokens are scored in all; close it to cancel.
        """
        answer, settings, stats = self._answer, self._answer.settings.prefill, self._answer.stats
        sequence, self._text = answer.sequence, PromptText(answer)
        self._from = sequence.reuse(answer.ids, whole=bool(self.dense))
        is_beyond = self._is_beyond()
        if is_beyond:
            decision = beyond(self.dense, len(answer.ids))
        else:
            # A request that seems to be about all of a text is read sparsely if a passage answers it.
            needs = "" if self.dense == ASKS_FOR_ALL else self.dense
            decision = decide(
                settings, needs, len(answer.ids) - self._from, dense_s(answer, self._pace, self._from)
            )
        self._clock.expect_reading(len(answer.ids) - 1 - self._from, sequence.columns.count)
        stats.reused_tokens = sequence.columns.count
        stats.disk_tokens = min(sequence.loaded_columns, stats.reused_tokens)
        ahead_tokens = min(sequence.ahead_columns, stats.reused_tokens)
        sequence.loaded_columns = sequence.ahead_columns = 0
        earlier = ""
        if sequence.skipped:
            earlier = f"; {sequence.skipped:,} earlier ones were skipped"
            try:
                earlier += yield from self._quotation()
            except Exception as error:
                if memory.fault(error):
                    raise
                earlier += f", and comparing them with this question failed ({reason_of(error)})"
        documents, columns = self._documents_read(), False
        if decision.sparse:
            columns = documents == "begun"
            decision = yield from self._skipping(decision, is_beyond, columns)
            columns &= decision.sparse
            if columns:
                decision = replace(decision, reason=f"{decision.reason}; {OF_BEGUN}")
        elif documents == "read":
            reason = f"{CHOSEN_COLUMNS} ({self._preference.reason})"
            chosen = yield from self._skipping(Decision(True, reason), is_beyond, True)
            columns = chosen.sparse
            decision = replace(decision, reason=chosen.reason)
        if decision.deviates and decision.sparse:
            self._changes.append(Change("prefill.keep_pct", "100", f"{settings.keep_pct:g}", decision.reason))
        elif decision.deviates:
            self._changes.append(all_is_read(settings, decision.reason))
        return ReadingPlan(
            self._text,
            self._from,
            decision.sparse,
            columns,
            self._scored,
            f"{ahead_tokens:,} tokens were read before the question; " if ahead_tokens else "",
            decision.reason,
            earlier,
            self._scorer if decision.sparse or columns else "",
            self._matches is False and (decision.sparse or sequence.skipped > 0),
            tuple(self._changes),
        )

    def _documents_read(self) -> Literal["", "begun", "read"]:
        """How much of the documents is in the cache, provided that their columns may be selected.

        "begun" only if nothing else follows them in the cache: later turns need the conversation.
        """
        answer, sequence, start = self._answer, self._answer.sequence, self._from
        prefill, preference = answer.settings.prefill, self._preference
        if not (attends_to_chosen(prefill, self.dense, preference, start) and sequence.can_select):
            return ""
        if answer.sight is not None:  # rows of images have positions that selected columns do not
            return ""
        layout = self._text.layout
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
        """The scorer's name. Loads the draft model if the scorer needs one that can read all of the text."""
        answer = self._answer
        wanted = answer.settings.prefill.scorer
        if wanted == "auto" or not SCORERS[wanted].needs_draft:
            return _DEFAULT_SCORER if wanted == "auto" else wanted
        if self._drafts is None:
            raise DraftModelError(f"The scorer “{wanted}” needs a draft model.", "Choose another scorer.")
        why_not = "a draft model cannot read more than the context"
        if answer.most_tokens is None:
            reference = answer.request.settings.draft_model.model  # also where it does not draft
            self._draft = self._drafts.scoring(reference, drafts=answer.proposer is not None)
            why_not = self._draft.loaded.why_not_read(answer.ids)
        if why_not:
            self._draft = None
            self._changes.append(Change("prefill.scorer", wanted, _DEFAULT_SCORER, why_not))
            return _DEFAULT_SCORER
        return wanted

    def _skipping(self, decision: Decision, is_beyond: bool, columns: bool) -> Generator[int, None, Decision]:
        """Score the new tokens, or all if columns are selected. If that fails, everything is read."""
        answer, settings = self._answer, self._answer.settings.prefill
        self._scorer = self._choose()
        try:
            start = 0 if columns else self._from
            passages = self._text.layout.passages(start, len(self._text.ids), settings)
            if decision.sparse:
                self._clock.expect_reading(self._probably_read(passages), answer.sequence.columns.count)
            scored = yield from self._score(self._scorer, passages)
        except Exception as error:
            if memory.fault(error) or answer.most_tokens is not None:
                raise
            reason = f"scoring failed ({reason_of(error)}), so all of it was read"
            return Decision(False, reason, deviates=True)
        self._scored = passages, scored
        if scored.used:
            self._scorer = scored.used
            if scored.without:
                self._changes.append(Change("prefill.scorer", settings.scorer, scored.used, scored.without))
        # A continuation is a request that matches no passage and still does not need the whole text.
        clear = scored.stands_out or self._text.layout.goes_on or self._is_answered_by_read_ones()
        self._matches = bool(self._matches) or clear
        if settings.mode == "auto" and not is_beyond and not clear:
            reason = ASKS_FOR_ALL if self.dense == ASKS_FOR_ALL else NOTHING_STANDS_OUT
            return Decision(False, reason, deviates=True)
        return decision

    def _quotation(self) -> Generator[int, None, str]:
        """Choose the skipped passages to quote; returns the phrase about them for the reason."""
        answer, settings, layout = self._answer, self._answer.settings.prefill, self._text.layout
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
        # A regenerated question is cached already, so that nothing can be quoted before it.
        if settings.read_on == "off" or question[0] < self._from:
            return ""
        positions = to_quote(sequence.columns, passages, scored, settings, room_tokens)
        if not len(positions):
            return ""
        self._text = self._text.quoting(positions, int(question[0]))
        return f", {len(positions):,} of them are quoted before the question"

    def _stands_out_by_words(self) -> bool:
        """Whether the question matches some passage of the documents, read or skipped, by its words."""
        layout = self._text.layout
        places = np.flatnonzero(layout.source >= 0)
        if not len(places):
            return False
        prefill = self._answer.settings.prefill
        passages = layout.passages(int(places[0]), int(places[-1]) + 1, prefill)
        _, stands = stands_out(self._text.words, layout.question, passages, self._answer.model.word_rank)
        return stands

    def _is_answered_by_read_ones(self) -> bool:
        """Whether the question matches, by words, a document that was read from its start without gaps."""
        begun = bool((self._text.layout.source[: self._from] >= 0).any())
        return begun and not self._answer.sequence.skipped and self._stands_out_by_words()

    def _probably_read(self, passages: Passages) -> float:
        """Expected number of new tokens to read, before scoring: the share, and what is always read."""
        must = must_keep(self._text.layout.always_read, passages, largest_window(self._answer.sequence.cache))
        lengths, is_new = passages.lengths, passages.firsts >= self._from
        total = float(lengths[is_new].sum())
        share = self._answer.settings.prefill.keep_pct / 100 * total + float(lengths.mean()) / 2
        most = self._answer.most_tokens
        read = min(total, share + float(lengths[is_new & must].sum()))
        return read if most is None else min(read, most_read_tokens(most))

    def _score(self, scorer: str, passages: Passages) -> Generator[int, None, Scored]:
        answer, stats = self._answer, self._answer.stats
        started, before_s = answer.clock(), stats.score_s
        total = passages.end - int(passages.firsts[0])
        if self._clock.pace is None and total >= _PROBED_TOKENS:
            self._clock.guess(self._pace.probe())
        self._expect_scoring(scorer)
        inputs = ScorerInputs(
            answer.model,
            [*self._text.ids],
            self._text.layout,
            passages,
            self._text.words,
            answer.settings.prefill,
            draft=self._draft,
            embedder=self._embedder,
            about_all=self.dense == ASKS_FOR_ALL,
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
                yield total
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


def dense_s(answer: Answer, pace: Pace, start: int) -> float | None:
    """Predicted seconds of reading all from `start` on; None if unknown or if it exceeds the context."""
    if answer.most_tokens is not None:
        return None
    return pace.dense_s(len(answer.ids) - start, answer.sequence.columns.count)


def all_is_read(settings: Prefill, reason: str) -> Change:
    """The change for a prompt that is read completely although the settings allow less."""
    return Change("prefill.mode", settings.mode, "off", reason)
