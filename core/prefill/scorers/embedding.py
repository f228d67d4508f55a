"""embedding and fusion: score passages by their meaning, alone and together with their words.

A passage's meaning is the similarity of its vector with the question's (`core.encoder`); vectors of a text
are computed once and kept on the disk. The question is the user's own words, without pasted text. `fusion`
adds reciprocal ranks, as the two have no common scale: 1 ÷ (20 + rank) by words and by meaning (Cormack,
Clarke and Buettcher, “Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods”,
2009). The encoder learned English: in texts whose words it cuts into many pieces meaning counts a fifth as
much as words.

Texts in a script that the encoder does not support, and texts too short for vectors of their own, are scored
by words alone; so is everything where the encoder is unavailable, and the answer gives the reason.

All thresholds were chosen on the tuning half of `bench retrieval` (resources/notes/retrieval.md).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.errors import EncoderUnavailableError
from core.prefill.layout import Text
from core.prefill.scorers.lexical import scored_by_words
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep

Array = np.ndarray[Any, Any]

_RANK_OFFSET = 20
# A shorter text is scored by its words.
_LEAST_CHARACTERS = 200
# The largest share of a text's letters that may be missing in the encoder's vocabulary.
_UNKNOWN_SHARE = 0.3
# The encoder handles a text's language badly if it cuts words into more pieces than this and more than this
# share of the letters have accents: texts full of identifiers have as many pieces, and are English. Below:
# the share of meaning in the fused scores there and elsewhere. 1/6 is the largest share with which German,
# French and Spanish are found no worse than by words at any keep.
_FRAGMENTED = 1.55
_ACCENTED_SHARE = 0.005
_MEANING, _MEANING_FRAGMENTED = 1 / 2, 1 / 6
# The least similarity, -3 to 3, of a passage that answers a question: alone, where words match as well, and
# for a request that seems to be about all of the text.
_NEAR, _NEAR_WITH_WORDS, _NEAR_FOR_ALL = 0.9, 0.65, 1.0
# The least `clearness` of words that does so where similarities say little: passages in one language are all
# similar to a question in it.
_CLEAR_WORDS = 2.5
_NO_TEXT = "the prompt is given as token IDs, so its passages have no vectors"
_NO_LANGUAGE = "the text is in a language that the encoder does not support"


class Meaning(Struct, frozen=True):
    """Similarity of passages with the question.

    `similarity`: float32, one a passage; NaN where unknown, for the reason `why`. `share`: float32, the share
    of meaning in a passage's fused score. `fragmented`: whether all passages with a vector are in a language
    that the encoder handles badly; `foreign`: whether no passage is in one that it supports.
    """

    similarity: Array
    share: Array
    why: str = ""
    fragmented: bool = False
    foreign: bool = False


def score_by_words_and_meaning(inputs: ScorerInputs) -> Scoring:
    """A `Score`. By words where no passage has a vector."""
    meaning = yield from meaning_of(inputs)
    words = scored_by_words(inputs)
    if np.isnan(meaning.similarity).all():
        return _by_words(words, meaning, inputs.about_all)
    scores = fused(words.scores, meaning.similarity, meaning.share)
    return Scored(scores, matches(meaning, words, inputs.about_all), words.clearness)


def fused(words: Array, similarity: Array, share: Array | float = _MEANING) -> Array:
    """float32, one a passage: the mean of reciprocal ranks, with the weight `share` of those by meaning.

    By words alone where `similarity` is NaN.
    """
    by_words = 1.0 / (_RANK_OFFSET + _ranks(words))
    by_meaning = 1.0 / (_RANK_OFFSET + _ranks(np.nan_to_num(similarity, nan=-np.inf)))
    of_meaning = np.where(np.isnan(similarity), 0.0, share)
    return np.asarray((1 - of_meaning) * by_words + of_meaning * by_meaning, np.float32)


def matches(meaning: Meaning, words: Scored, about_all: bool) -> bool:
    """Whether a passage answers the question.

    The best passage's similarity tells requests about a whole text from questions about a place better than
    its distance from the other passages', which is as large for both. Requests that seem to be about all of
    the text (`core.prefill.plan`) need a passage that is very similar: “how many of the paddles are
    rotten?”.
    """
    if meaning.fragmented:
        return not about_all and words.clearness >= _CLEAR_WORDS
    best = float(meaning.similarity[~np.isnan(meaning.similarity)].max())
    if about_all:
        return best >= _NEAR_FOR_ALL
    return best >= (_NEAR_WITH_WORDS if words.stands_out else _NEAR)


def _by_words(words: Scored, meaning: Meaning, about_all: bool) -> Scored:
    """`words` where no passage has a vector."""
    clear = words.stands_out
    if meaning.foreign:
        clear = not about_all and words.clearness >= _CLEAR_WORDS
    return replace(words, stands_out=clear, without=meaning.why, used="lexical")


def meaning_of(inputs: ScorerInputs) -> Generator[ScoringStep, None, Meaning]:
    """The passages' similarity with the question."""
    from core.encoder.encoder import similarity  # not loaded before its first use

    layout, passages = inputs.layout, inputs.passages
    nothing = np.full(len(passages), np.nan, np.float32)
    halves = np.full(len(passages), _MEANING, np.float32)
    first, end = int(passages.firsts[0]), passages.end
    embedder = inputs.embedder if layout.asked else None
    texts = [
        text
        for text in layout.texts
        if embedder is not None
        and len(text.text) >= _LEAST_CHARACTERS
        and text.start < end
        and text.end > first
        and (passages.of[text.start : text.end] >= 0).any()
    ]
    unread, seen = list[float](), set[str]()  # vectors of a text that is attached twice are computed once
    for text in texts:
        is_new = text.text not in seen
        left = embedder.left(text.text, text.passages) if embedder and is_new else 0.0
        unread.append((text.end - text.start) * left)
        seen.add(text.text)
    yield ScoringStep(0, sum(unread))
    if not layout.texts or not layout.asked:
        return Meaning(nothing, halves, "" if inputs.settings.scorer == "auto" else _NO_TEXT)
    if embedder is None or not texts:
        return Meaning(nothing, halves)
    of_tokens = np.full(end, np.nan, np.float32)
    shares = np.full(end, _MEANING, np.float32)
    done, why, fragmented = 0, "", list[bool]()
    query: Array | None = None
    try:
        for number, text in enumerate(texts):
            tokens = text.end - text.start
            embedding = embedder.vectors(text.text, text.passages)
            try:
                while True:
                    scored = done + min(next(embedding), tokens)
                    unread[number] = tokens * embedder.left(text.text, text.passages)
                    yield ScoringStep(min(end - first, scored), sum(unread))
            except StopIteration as stop:
                vectors = stop.value
            done, unread[number] = done + tokens, 0.0
            if vectors.unknown > _UNKNOWN_SHARE:
                why = _NO_LANGUAGE
            else:
                if query is None:
                    query = embedder.query(layout.asked)
                _put(of_tokens, text, similarity(vectors, query))
                badly = vectors.pieces_per_word > _FRAGMENTED and _is_accented(text.text)
                fragmented.append(badly)
                if badly:
                    shares[text.start : text.end] = _MEANING_FRAGMENTED
    except EncoderUnavailableError as error:
        return Meaning(nothing, halves, str(error))
    # A passage of fixed length gets the best similarity of its tokens.
    lowered = np.where(np.isnan(of_tokens), -np.inf, of_tokens)
    found = np.maximum.reduceat(lowered, passages.firsts)
    similar = np.where(np.isinf(found), np.nan, found).astype(np.float32)
    share = np.minimum.reduceat(shares, passages.firsts)
    return Meaning(similar, share, why, bool(fragmented) and all(fragmented), not fragmented)


def _is_accented(text: str) -> bool:
    """Whether more than `_ACCENTED_SHARE` of the Latin letters have an accent, as in few English texts."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    accented = np.count_nonzero((codes >= 0xC0) & (codes < 0x250))
    lower = codes | 0x20
    return bool(accented > _ACCENTED_SHARE * np.count_nonzero((lower >= ord("a")) & (lower <= ord("z"))))


def _put(of_tokens: Array, text: Text, similar: Array) -> None:
    """Give each token of `text` the value of its passage."""
    firsts = np.minimum(text.firsts, len(of_tokens))
    lengths = np.diff(np.append(firsts, min(text.end, len(of_tokens))))
    of_tokens[firsts[0] : firsts[0] + int(lengths.sum())] = np.repeat(similar, lengths)


def _ranks(scores: Array) -> Array:
    """Ranks of `scores`, 0 for the highest."""
    return np.argsort(np.argsort(-scores, kind="stable"))
