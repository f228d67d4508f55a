"""embedding and fusion: scores passages by what they mean, alone and together with their words.

A passage's meaning is the similarity of its vector with the question's (`core.encoder`); vectors of a text
are computed once and kept on the disk. The question is the user's own words, without pasted text. `fusion`
adds reciprocal ranks, as the two have no common scale: 1 ÷ (20 + rank) by words and by meaning (Cormack,
Clarke and Buettcher, “Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods”,
2009).

Texts in a language that the encoder does not know, and texts too short for a vector of their own, are scored
by words alone; so is everything where the encoder is unavailable, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.encoder.vectors import similarity
from core.errors import EncoderUnavailableError
from core.prefill.layout import Text
from core.prefill.scorers.lexical import score_by_words
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring

Array = np.ndarray[Any, Any]

_RANK_OFFSET = 20
# A shorter text is scored by its words.
_LEAST_CHARACTERS = 200
# The largest share of a text's letters that the encoder may not know.
_UNKNOWN_SHARE = 0.3
# The least similarity, -3 to 3, of a passage that answers. On ten documents for tuning, of 160 requests for
# the whole 3% have 0.85 and 28% have 0.5; of 61 questions about a place 88% and 97%.
_NEAR, _NEAR_WITH_WORDS = 0.85, 0.5
_NO_TEXT = "the prompt is given as token IDs, so its passages have no vectors"
_NO_LANGUAGE = "the text is in a language that the encoder does not know"


class Meaning(Struct, frozen=True):
    """`similarity` (float32, one a passage) with the question; NaN where it is not known, and `why`."""

    similarity: Array
    why: str = ""


def score_by_meaning(inputs: ScorerInputs) -> Scoring:
    """A `Score`. By words where no passage has a vector; passages without one come last."""
    words = yield from score_by_words(inputs)
    meaning = yield from meaning_of(inputs)
    known = ~np.isnan(meaning.similarity)
    if not known.any():
        return replace(words, without=meaning.why, used="lexical")
    lowest = float(meaning.similarity[known].min())
    scores = np.where(known, meaning.similarity, lowest).astype(np.float32)
    return Scored(scores, stands_out(meaning.similarity, words.stands_out))


def score_by_words_and_meaning(inputs: ScorerInputs) -> Scoring:
    """A `Score`. By words where no passage has a vector."""
    words = yield from score_by_words(inputs)
    meaning = yield from meaning_of(inputs)
    if np.isnan(meaning.similarity).all():
        return replace(words, without=meaning.why, used="lexical")
    scores = fused(words.scores, meaning.similarity)
    return Scored(scores, stands_out(meaning.similarity, words.stands_out))


def fused(words: Array, similarity: Array) -> Array:
    """float32, one a passage: reciprocal ranks added; by words alone where `similarity` is NaN."""
    by_words = 1.0 / (_RANK_OFFSET + _ranks(words))
    by_meaning = 1.0 / (_RANK_OFFSET + _ranks(np.nan_to_num(similarity, nan=-np.inf)))
    return np.asarray(by_words + np.where(np.isnan(similarity), by_words, by_meaning), np.float32)


def stands_out(similarity: Array, by_words: bool) -> bool:
    """Whether some passage answers the question: it is near it, or less near and shares its rare words.

    The best passage's similarity tells requests about a whole text from questions about a place better than
    its distance from the other passages', which is as large for both.
    """
    best = float(similarity[~np.isnan(similarity)].max())
    return best >= (_NEAR_WITH_WORDS if by_words else _NEAR)


def meaning_of(inputs: ScorerInputs) -> Generator[int, None, Meaning]:
    """The passages' similarity with the question; yields how many tokens were scored so far."""
    layout, passages = inputs.layout, inputs.passages
    nothing = np.full(len(passages), np.nan, np.float32)
    first, end = int(passages.firsts[0]), passages.end
    texts = [
        text
        for text in layout.texts
        if len(text.text) >= _LEAST_CHARACTERS
        and text.start < end
        and text.end > first
        and (passages.of[text.start : text.end] >= 0).any()
    ]
    if not layout.texts or not layout.asked:
        return Meaning(nothing, "" if inputs.settings.scorer == "auto" else _NO_TEXT)
    if inputs.embedder is None or not texts:
        return Meaning(nothing)
    of_tokens = np.full(end, np.nan, np.float32)
    done, why = 0, ""
    try:
        for text in texts:
            embedding = inputs.embedder.vectors(text.text, text.passages)
            try:
                while True:
                    yield min(end - first, done + min(next(embedding), text.end - text.start))
            except StopIteration as stop:
                vectors = stop.value
            done += text.end - text.start
            if vectors.unknown > _UNKNOWN_SHARE:
                why = _NO_LANGUAGE
            else:
                query = inputs.embedder.query(layout.asked)
                _put(of_tokens, text, similarity(vectors, query))
    except EncoderUnavailableError as error:
        return Meaning(nothing, str(error))
    # A passage of fixed length has the best that its tokens have.
    lowered = np.where(np.isnan(of_tokens), -np.inf, of_tokens)
    found = np.maximum.reduceat(lowered, passages.firsts)
    return Meaning(np.where(np.isinf(found), np.nan, found).astype(np.float32), why)


def _put(of_tokens: Array, text: Text, similar: Array) -> None:
    """Give each token of `text` what its passage has."""
    firsts = np.minimum(text.firsts, len(of_tokens))
    lengths = np.diff(np.append(firsts, min(text.end, len(of_tokens))))
    of_tokens[firsts[0] : firsts[0] + int(lengths.sum())] = np.repeat(similar, lengths)


def _ranks(scores: Array) -> Array:
    """0 for the highest."""
    return np.argsort(np.argsort(-scores, kind="stable"))
