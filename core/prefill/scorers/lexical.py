"""lexical: scores passages by the question's words, without any model.

BM25 with passages for documents: a passage counts what of the question's words and word pairs it
has, by the square of their rarity, as question and passage both weigh a word. What is said about a
word mostly stands behind it, so its weight is carried on (`core.prefill.scorers.score_propagation`); up to
half goes to the passage before, where its sentence began. What is left of the share goes to anchors, spread
evenly at every scale, and a little to recent passages. Finds names, numbers and terms; blind to paraphrase.

Words are taken from token pieces, lower-cased and cut to `_STEM_CHARACTERS`, which brings
“translate” and “translation” together without knowing a language. Pieces beyond ASCII also count
as they are, for scripts without spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.prefill.scorers.score_propagation import carried
from core.prefill.scorers.scorer import ScorerInputs, Scoring

_STEM_CHARACTERS = 6
_WORD_CHARACTERS = 24
_SATURATION = 1.2
_BEFORE = 0.5
# Small beside any match: they only order what the question's words leave even.
_ANCHOR = 0.02
_RECENT = 0.01
_SPACES = ("Ġ", "▁", "Ċ", " ")


def score_by_words(inputs: ScorerInputs) -> Scoring:
    """A `Score`."""
    pieces = inputs.loaded.tokenizer.convert_ids_to_tokens(inputs.new_ids)
    yield 0
    return lexical_scores(pieces, inputs.question[inputs.start :], inputs.settings.passage_tokens)


def lexical_scores(
    pieces: Sequence[str], question: np.ndarray[Any, Any], passage_tokens: int
) -> np.ndarray[Any, Any]:
    """float32, one a token. `pieces` are the tokens' strings, `question` (bool) says which ask."""
    count = -(-len(pieces) // passage_tokens)
    asked: set[str] = set()
    # Where in each passage a term stands, in tokens from its beginning.
    held: list[dict[str, list[int]]] = [{} for _ in range(count)]
    for at, term in _terms(pieces):
        if question[at]:
            asked.add(term)
        else:
            held[at // passage_tokens].setdefault(term, []).append(at % passage_tokens)
    own, before = np.zeros((2, count))
    for term in asked:
        times = np.array([len(terms.get(term, ())) for terms in held], dtype=np.float64)
        having = np.flatnonzero(times)
        rarity = np.log(1 + (count - len(having) + 0.5) / (len(having) + 0.5))
        weights = rarity**2 * times * (1 + _SATURATION) / (times + _SATURATION)
        own += weights
        for passage in having[having > 0]:
            first = held[passage][term][0]
            before[passage - 1] += weights[passage] * _BEFORE * (1.0 - first / passage_tokens)
    scores = carried(own + before)
    even = _ANCHOR * _spread(count) + _RECENT * np.arange(count) / count
    scores += even * (float(scores.max()) or 1.0)
    return np.repeat(scores.astype(np.float32), passage_tokens)[: len(pieces)]


def _terms(pieces: Sequence[str]) -> list[tuple[int, str]]:
    """Words, pairs of words that follow each other, and pieces beyond ASCII; each where it begins."""
    found: list[tuple[int, str]] = []
    word, began, before = "", 0, ""

    def end() -> None:
        nonlocal word, before
        if word:
            stem = word[:_STEM_CHARACTERS]
            found.append((began, stem))
            if before:
                found.append((began, f"{before} {stem}"))
            before = stem
        word = ""

    for at, piece in enumerate(pieces):
        bare = piece.lstrip("".join(_SPACES))
        if len(bare) < len(piece) or not bare.isalnum() or len(word) >= _WORD_CHARACTERS:
            end()
        if not bare.isascii():
            found.append((at, piece))
        kept = "".join(c for c in bare if c.isalnum()).lower()
        if kept and not word:
            began = at
        word += kept
        if not bare.isalnum():
            end()
    end()
    return found


def _spread(count: int) -> np.ndarray[Any, Any]:
    """0 to 1 so that the highest n are spread evenly for any n: the order of halving intervals."""
    bits = max(1, (count - 1).bit_length())
    reverse = np.array([int(format(i, f"0{bits}b")[::-1], 2) for i in range(count)])
    return np.asarray(1.0 - np.argsort(np.argsort(reverse)) / count)
