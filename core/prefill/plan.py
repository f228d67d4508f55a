"""Plan of a reading: completely or sparsely, and why; which passages; which ones later turns quote.

Pure, but for the tokenizer in `excerpt`.

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
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from core.events import Passage
from core.kv.positions import Columns
from core.models.chat_template import inner_of
from core.models.loader import LoadedModel
from core.models.tokenizer import encode
from core.prefill.layout import Layout, Passages
from core.prefill.read import Positions
from core.prefill.scorers.scorer import Scored
from core.settings.prefill import Prefill

# All and whole; how many and how often. Words that are common in another language of the list are left out.
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
CHOSEN_COLUMNS = "the answer attends to the passages that match, from which the model answers better"
OF_BEGUN = "of what was read before, it attends to the passages that match"
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
    return Decision(True, "asked for" if settings.mode == "on" else f"{new_tokens:,} tokens are new{takes}")


# Smaller models answer better from chosen passages than from all of a text that they have read, and, if they
# have read it, from the columns of these passages (docs/sparse-prefill.md).
_LEAST_PARAMETERS = 1_000_000_000


class Preference(Struct, frozen=True):
    """What a model answers better from: `passages` read alone, rather than all of a long text; their
    `columns`, rather than all columns of a text that it has read. `reason`: how that is known.
    """

    passages: bool
    columns: bool
    reason: str = ""


def preference_by_size(parameters: int) -> Preference:
    """That of a model that was not tried."""
    is_small = parameters < _LEAST_PARAMETERS
    return Preference(is_small, is_small, "by its size")


def may_skip(settings: Prefill) -> bool:
    """Whether it is left to Draftlight how much of a long text is read."""
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
# passages that reach into the last tokens of a sliding window's length. Of the others the best, until they
# have keep · M tokens (the SpecPrefill paper has ⌈keep · M ÷ passage⌉ passages of one length). For a
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

# The share of the tokens that a fresh reading would choose which one turn quotes at most.
_LIMIT = 0.5
# Between quoted passages, in any language.
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
