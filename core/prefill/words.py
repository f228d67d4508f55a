"""The words of a prompt, and how well those of a question match each passage, without a model.

BM25 with passages as documents, once over word stems and pairs of stems, once over runs of `_GRAM`
characters, and the two added. Runs find what words miss (compounds, inflections, parts of identifiers), words
are stronger evidence; both together find more (notes/retrieval.md). A sentence may continue in the
next passage, so each passage counts alone and with its neighbour.

No word list and no language is needed: a stem is a word's first `_STEM` characters, and terms that all
passages contain have almost no weight. Everything is array arithmetic on character codes: 100,000 tokens take
about 30 ms. Sources: Robertson and Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond” (2009);
character runs: McNamee and Mayfield, “Character N-Gram Tokenization for European Language Text Retrieval”
(2004). Deviation: rarity is squared, as question and passage both weigh a term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.prefill.layout import Passages

Array = np.ndarray[Any, Any]

_STEM = 6
_GRAM = 4
_SATURATION = 1.2
# The weight of the best word score relative to the best run score.
_WORDS_WEIGH = 0.5
# The share of all passages above which a word is common.
_COMMON = 0.25
# Thresholds of `clearness` and `rarest_shared_word` for a question that a passage answers.
CLEAR = 3.5
_RARE = 1 / 6
# White space in tokens: space, tab, line feed and return of byte-level pieces, and SentencePiece's space.
_SPACES = (0x120, 0x109, 0x10A, 0x10D, 0x2581)
_PRIME = np.uint64(1_099_511_628_211)
_SIEVE_BITS = np.uint64(16)


class _Terms(Struct, frozen=True):
    """`hashes` (uint64) of terms, and the character (int64) where each begins."""

    hashes: Array
    starts: Array


class Words(Struct, frozen=True):
    """The terms of a prompt's tokens: stems and pairs of stems, and runs of characters.

    `words_of` computes them once a prompt, for scoring, quotations and sources. `codes` are the characters,
    `owners` (int32) the token of each.
    """

    codes: Array
    owners: Array
    stems: _Terms
    runs: _Terms

    def shifted(self, at: int, tokens: int) -> Words:
        """The words after `tokens` tokens without terms were inserted before the token `at`."""
        return replace(self, owners=np.where(self.owners >= at, self.owners + tokens, self.owners))


class Asked(Struct, frozen=True):
    """The question's terms: hashes (uint64, ascending) of stems and of runs."""

    stems: Array
    runs: Array


def words_of(pieces: Sequence[str]) -> Words:
    """`pieces` are the tokens' strings."""
    codes, owners = _characters(pieces)
    return Words(codes, owners, _words(codes), _runs(codes))


def asked_by(words: Words, tokens: Array) -> Asked:
    """The terms of the tokens that `tokens` (bool) marks."""
    stems, runs = (np.unique(of.hashes[tokens[words.owners[of.starts]]]) for of in (words.stems, words.runs))
    return Asked(stems, runs)


def matching(words: Words, asked: Asked, passages: Passages) -> Array:
    """float64, one a passage: how well it and a neighbour match the terms `asked`."""
    scores = _WORDS_WEIGH * _best_is_one(_relevance(words.stems, words.owners, asked.stems, passages))
    scores += _best_is_one(_relevance(words.runs, words.owners, asked.runs, passages))
    return np.asarray(scores)


def stands_out(
    words: Words, question: Array, passages: Passages, rank: Callable[[str], float]
) -> tuple[float, bool]:
    """The `clearness`, and whether a passage answers the question, by its words.

    Either of two signs is enough: a passage contains several of the question's rarest character runs; or
    question and text share a word that the tokenizer learned late or not at all. 96% of the questions about a
    place have one of them, and 7% of the requests about a whole text (notes/retrieval.md).
    """
    clear = clearness(words, asked_by(words, question), passages)
    return clear, clear >= CLEAR or rarest_shared_word(words, question, passages, rank) >= _RARE


def clearness(words: Words, asked: Asked, passages: Passages) -> float:
    """How clearly words point at a passage: the best BM25 over character runs, in units of the rarest run.

    0 where the text contains no run of the question. Requests about a text as a whole (“sum this up”) share
    only common runs with it, or none where they are in another language.
    """
    times = _times(words.runs, words.owners, asked.runs, passages)
    if times is None:
        return 0.0
    return float(_bm25(_with_next(times)).max() / np.log(1 + len(passages)) ** 2)


def rarest_shared_word(
    words: Words, question: Array, passages: Passages, rank: Callable[[str], float]
) -> float:
    """The highest `rank` of a word that question and text share, 0 if there is none.

    A word that more than the share `_COMMON` of the passages have is ignored, as are the small words of a
    language of which the tokenizer has few words.
    """
    inside = _in_word(words.codes)
    single = (len(words.stems.hashes) + 1) // 2  # pairs follow
    hashes, starts = words.stems.hashes[:single], words.stems.starts[:single]
    tokens = words.owners[starts]
    where = passages.of[tokens]
    best = 0.0
    for at in np.flatnonzero(question[tokens]):
        holding = where[(hashes == hashes[at]) & (where >= 0)]
        if len(holding) and len(np.unique(holding)) <= max(1.0, _COMMON * len(passages)):
            start = int(starts[at])
            rest = np.flatnonzero(~inside[start:])
            length = int(rest[0]) if len(rest) else len(inside) - start
            best = max(best, rank("".join(map(chr, words.codes[start : start + length]))))
    return best


def _characters(pieces: Sequence[str]) -> tuple[Array, Array]:
    """All characters as uint32 codes, ASCII letters in lower case, and the token (int32) of each."""
    text = "".join(pieces)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).copy()
    codes[np.isin(codes, _SPACES)] = ord(" ")
    codes[(codes >= ord("A")) & (codes <= ord("Z"))] += 32
    lengths = np.fromiter(map(len, pieces), dtype=np.int32, count=len(pieces))
    return codes, np.repeat(np.arange(len(pieces), dtype=np.int32), lengths)


def _in_word(codes: Array) -> Array:
    letters = (codes >= ord("a")) & (codes <= ord("z"))
    return np.asarray(letters | (codes >= 128) | ((codes >= ord("0")) & (codes <= ord("9"))))


def _words(codes: Array) -> _Terms:
    """Stems, and pairs of stems that follow each other, a pair where its second begins."""
    inside = _in_word(codes)
    starts = np.flatnonzero(inside & ~np.append(False, inside[:-1]))
    padded = np.append(codes, np.zeros(_STEM, dtype=np.uint32))
    padded_inside = np.append(inside, np.zeros(_STEM, dtype=np.bool_))
    hashes = np.zeros(len(starts), dtype=np.uint64)
    going_on = np.ones(len(starts), dtype=np.bool_)
    for offset in range(_STEM):
        going_on &= padded_inside[starts + offset]
        hashes = np.where(going_on, (hashes ^ padded[starts + offset]) * _PRIME, hashes)
    pairs = hashes[:-1] * _PRIME ^ hashes[1:]
    return _Terms(np.append(hashes, pairs), np.append(starts, starts[1:]))


def _runs(codes: Array) -> _Terms:
    """Every run of `_GRAM` characters but those with two spaces side by side."""
    count = max(0, len(codes) - _GRAM + 1)
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(_GRAM):
        hashes = (hashes ^ codes[offset : offset + count]) * _PRIME
    blank = codes == ord(" ")
    gap = blank[:-1] & blank[1:]
    good = np.ones(count, dtype=np.bool_)
    for offset in range(_GRAM - 1):
        good &= ~gap[offset : offset + count]
    starts = np.flatnonzero(good)
    return _Terms(hashes[starts], starts)


def _relevance(terms: _Terms, owners: Array, asked: Array, passages: Passages) -> Array:
    """BM25 of each passage, alone and with the better of its neighbours: float64 [passages]."""
    times = _times(terms, owners, asked, passages)
    if times is None:
        return np.zeros(len(passages))
    with_next = _bm25(_with_next(times))
    with_either = np.maximum(with_next, np.append(0.0, with_next[:-1]))
    return np.asarray(with_either + _bm25(times))


def _times(terms: _Terms, owners: Array, asked: Array, passages: Passages) -> Array | None:
    """float64 [terms, passages]: occurrences of each of the terms `asked`; None if there are none."""
    if not len(asked):
        return None
    # A small table excludes most terms before the exact search.
    shift = np.uint64(64) - _SIEVE_BITS
    sieve = np.zeros(1 << int(_SIEVE_BITS), dtype=np.bool_)
    sieve[asked >> shift] = True
    likely = np.flatnonzero(sieve[terms.hashes >> shift])
    where = passages.of[owners[terms.starts[likely]]]
    likely, where = likely[where >= 0], where[where >= 0]
    rows = np.minimum(np.searchsorted(asked, terms.hashes[likely]), len(asked) - 1)
    exact = asked[rows] == terms.hashes[likely]
    count = len(passages)
    times = np.bincount(rows[exact] * count + where[exact], minlength=len(asked) * count)
    return times.reshape(len(asked), count).astype(np.float64)


def _with_next(times: Array) -> Array:
    """Each passage and the next as one."""
    pairs = times.copy()
    pairs[:, :-1] += times[:, 1:]
    return pairs


def _bm25(times: Array) -> Array:
    """float64 [passages], from the occurrences `times` [terms, passages]."""
    count, having = times.shape[1], np.count_nonzero(times, axis=1)
    rarity = np.log(1 + (count - having + 0.5) / (having + 0.5))
    return np.asarray((rarity**2) @ (times * (1 + _SATURATION) / (times + _SATURATION)))


def _best_is_one(scores: Array) -> Array:
    return np.asarray(scores / (float(scores.max(initial=0.0)) or 1.0))
