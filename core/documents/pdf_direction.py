"""The reading order of a line of a PDF that goes from right to left. Pure.

A PDF has glyphs at positions. PDFium orders words, but leaves punctuation and numbers between them as they
are drawn, and mirrors some brackets: “10:30.” at the end of a Hebrew line becomes “.10:30”, and the Arabic
“2024-117”, which is drawn as 117-2024, keeps that order. This module undoes the bidirectional algorithm
(Unicode Standard Annex 9) on the characters in the order of their positions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

_MIRROR = dict(zip("()[]{}<>«»", ")(][}{><»«"))
_LEFT, _RIGHT, _DIGIT, _NEUTRAL = "LRDN"
# Over the classes above, from left to right: Latin words, the characters between them, and numbers after
# them.
_WORDS = re.compile(r"L(?:[LDN]*[LD])?")
_SIGNS = "#$€£¥₪%°"
_NUMBER = re.compile(rf"[{_SIGNS}]*\d+(?:[-+.,:/\u066b\u066c]\d+)*[{_SIGNS}]*")
# After an Arabic letter, hyphens do not join numbers, and signs do not belong to them (rules W2 and W4).
_ARABIC_NUMBER = re.compile(r"\d+(?:[.,:/\u066b\u066c]\d+)*")
_OPENS, _CLOSES = "([{", ")]}"


def is_from_right(text: str) -> bool:
    """Whether most letters of `text` belong to scripts that go from right to left."""
    if text.isascii():
        return False
    classes = [_class(letter) for letter in text]
    return classes.count(_RIGHT) > classes.count(_LEFT)


def has_letters(text: str, *, from_right: bool) -> bool:
    """Whether `text` has a letter of a script that goes from right to left, or of another one."""
    kind = _RIGHT if from_right else _LEFT
    return not (from_right and text.isascii()) and any(_class(letter) == kind for letter in set(text))


def _class(letter: str) -> str:
    found = unicodedata.bidirectional(letter)
    if found in ("R", "AL"):
        return _RIGHT
    return _LEFT if found == "L" else _DIGIT if found in ("EN", "AN") else _NEUTRAL


def reading_order(
    letters: Sequence[str], spans: Sequence[tuple[float, float]]
) -> tuple[list[int], list[str]]:
    """The indices of a line's characters as they are read from the right, and the characters in that order.

    `spans` has the left and the right edge of each character; those of spaces are not used, as PDFium has
    them anywhere. Marks and the letters of a ligature follow their base in `letters`. Brackets face each
    other, whichever way the file encodes them.
    """
    clusters: list[list[int]] = []
    spaces: list[int] = []
    for index, letter in enumerate(letters):
        if letter.isspace():
            spaces.append(index)
        elif clusters and _joins(letters, spans, clusters[-1][0], index):
            clusters[-1].append(index)
        else:
            clusters.append([index])
    for cluster in clusters:
        if len(cluster) > 1 and all(_class(letters[index]) == _RIGHT for index in cluster):
            cluster.reverse()  # PDFium has the letters of a ligature as they are drawn
    clusters = _with_spaces(sorted(clusters, key=lambda cluster: spans[cluster[0]][0]), spans, spaces)
    drawn = "".join((letters[cluster[0]] or "\0")[0] for cluster in clusters)
    classes = "".join(map(_class, drawn))
    arabic = any(unicodedata.bidirectional(letter) == "AL" for letter in drawn)
    pieces: list[tuple[int, int]] = []
    at = 0
    while at < len(drawn):
        found = _WORDS.match(classes, at) or (_ARABIC_NUMBER if arabic else _NUMBER).match(drawn, at)
        end = found.end() if found else at + 1
        pieces.append((at, end))
        at = end
    order = [index for start, end in reversed(pieces) for cluster in clusters[start:end] for index in cluster]
    return order, facing([letters[index] for index in order])


def _joins(letters: Sequence[str], spans: Sequence[tuple[float, float]], base: int, index: int) -> bool:
    """Whether a character belongs to the one before it: a mark, or a letter of the same glyph."""
    letter = letters[index] or "\0"
    return unicodedata.category(letter) == "Mn" or (letter.isalpha() and spans[index] == spans[base])


def _with_spaces(
    clusters: list[list[int]], spans: Sequence[tuple[float, float]], spaces: list[int]
) -> list[list[int]]:
    """`clusters` from left to right, with spaces in the widest gaps; the others are read last."""
    inside = range(min(map(min, clusters), default=0), max(map(max, clusters), default=0))
    following = {index - 1 for index in spaces}
    count = sum(index in inside and index not in following for index in spaces)
    gaps = [spans[right[0]][0] - max(spans[index][1] for index in left) for left, right in pairwise(clusters)]
    widest = set(sorted(range(len(gaps)), key=lambda at: -gaps[at])[:count])
    rest = iter(spaces)
    found: list[list[int]] = []
    for at, cluster in enumerate(clusters):
        found.append(cluster)
        if at in widest:
            found.append([next(rest)])
    return [*([index] for index in rest), *found]


def facing(letters: list[str]) -> list[str]:
    """`letters` with brackets that open before they close."""
    text = "".join(letter or "\0" for letter in letters)
    for index, letter in enumerate(letters):
        before, after = text[max(0, index - 1) : index].strip(), text[index + 1 : index + 2].strip()
        starts = bool(after) and not before
        ends = bool(before) and (not after or after in ".,;:!?")
        if (letter and letter in _OPENS and ends) or (letter and letter in _CLOSES and starts):
            letters[index] = _MIRROR[letter]
    return letters
