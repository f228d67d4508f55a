"""The reading order of a PDF page that draws its words out of order. Pure.

Files may draw the operators of a formula after its letters, the labels of a form after its headings, or a
footer before the text. Words of a line are sorted from left to right, and lines from top to bottom, but only
where that is certain: no words of the line overlap, and no two lines of the page are side by side, as they
are in columns and tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from core.documents.pdf_tables import Word

# Words may overlap by this share of their height: kerned letters and descenders do.
_OVERLAP = 0.2
# Lower words of a line, such as indices, share at least this much of its height.
_SAME_LINE = 0.5


def visible_lines(words: Sequence[Word]) -> list[list[int]] | None:
    """The numbers of `words` by line, from left to right; None to keep the order of the file."""
    lines = [_sorted(words, line) for line in _drawn_lines(words)]
    if all(word.level for word in words):
        lines = _from_top(words, lines)
    order = [number for line in lines for number in line]
    return None if order == list(range(len(words))) else lines


def _drawn_lines(words: Sequence[Word]) -> list[list[int]]:
    """Runs of words that are consecutive in the file and on one line of the page."""
    lines: list[list[int]] = []
    for number, word in enumerate(words):
        if lines and not set(word.gap) & set("\r\n"):
            first = words[lines[-1][0]].box
            shared = min(first.bottom, word.box.bottom) - max(first.top, word.box.top)
            if shared >= _SAME_LINE * min(first.bottom - first.top, word.box.bottom - word.box.top):
                lines[-1].append(number)
                continue
        lines.append([number])
    return lines


def _sorted(words: Sequence[Word], line: list[int]) -> list[int]:
    """`line` from left to right, or unchanged if words overlap or are not level."""
    found = sorted(line, key=lambda number: words[number].box.left)
    if found == line or not all(words[number].level for number in line):
        return line
    boxes = [words[number].box for number in found]
    apart = (
        right.left - left.right > -_OVERLAP * (left.bottom - left.top) for left, right in pairwise(boxes)
    )
    return found if all(apart) else line


def _from_top(words: Sequence[Word], lines: list[list[int]]) -> list[list[int]]:
    """`lines` from top to bottom, or unchanged if two of them are side by side."""
    spans = [
        (min(words[at].box.top for at in line), max(words[at].box.bottom for at in line)) for line in lines
    ]
    order = sorted(range(len(lines)), key=lambda number: spans[number])
    for upper, lower in pairwise(order):
        (top, bottom), (next_top, next_bottom) = spans[upper], spans[lower]
        if bottom - next_top > _OVERLAP * min(bottom - top, next_bottom - next_top):
            return lines
    return [lines[number] for number in order]
