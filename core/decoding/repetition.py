"""Detection of answers that repeat themselves without end. Pure.

A small model can enter a loop that only the token limit ends. Two rules decide, of which the first is quick:

- Prose: the same words, at least five and at most `PROSE_WORDS`, three times in a row. This covers a
  sentence, a line or a clause, and a cycle of a few of them. Case, punctuation and white space do not count,
  numbers do. Shorter sentences of three or four words have to fill as many words as five would.
- Everything else, such as code, tables, lists, verse and data, or if the question requests a repetition: the
  same stretch of at most `LONGEST_PERIOD` tokens, at least four times and over 240 tokens.

Stopping an answer that was not finished is worse than ten tokens too many, so text that may be laid out
rather than prose gets the second rule.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

LEAST_WORDS = 5
PROSE_TIMES = 3
PROSE_WORDS = 160
_SHORTEST = 3  # words of a sentence that is shorter than `LEAST_WORDS`

LONGEST_PERIOD = 96
LEAST_TOKENS = 240
LEAST_TIMES = 4

# Scripts without spaces between words, of which a character counts as a word.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Up to 64 letters: the end of the text is searched again for each token.
_LETTERS = rf"(?:(?![{_IDEOGRAPHS}])[^\W_]){{1,64}}"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|{_LETTERS}(?:['’]{_LETTERS}){{0,9}}")
_REQUESTS = re.compile(
    r"""
    \b(?:repeat|repetition|over\s+and\s+over|again\s+and\s+again|echo|parrot|copy|loop|infinite|endless)
    | \b(?:\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|fifty|hundred|thousand|many)
      \s+(?:times|lines|copies)\b
    | \b(?:poem|poetry|song|lyrics|chorus|refrain|verse|stanza|rhyme|haiku|limerick|ballad|hymn|psalm|prayer
         |mantra|chant|litany|lullaby|sonnet|rap)s?\b
    | \b(?:wiederhol|immer\s+wieder|endlos|gedicht|lied|liedtext|strophe|refrain|vers|reim|gebet)
    | \b(?:\d+|zwei|drei|vier|fünf|zehn|zwanzig|hundert)\s*-?mal\b
    | \brép[éè]t|\b(?:\d+|deux|trois|quatre|cinq|dix|vingt|cent)\s+fois\b
    | \b(?:poème|poésie|chanson|paroles|strophe|couplet|comptine|prière)
    | \brep[ei]t|\b\w+\s+ve(?:ces|zes)\b|\bripet|\b\w+\s+volte\b|\b(?:poema|canción|canzone|canção|poesia)
    | 重复|重複|遍|繰り返|反復|반복|повтор|стих|песн|诗|詩|歌
    """,
    re.I | re.X,
)
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)", re.M)
# Lists, table rows, indented code, and rules of tables and forms.
_LAID_OUT = re.compile(
    r"^(?:[^\S\n]*(?:(?:[-*+•‣◦]|\(?\w{1,3}[.)])\s|\|)|\t| {4,}\S)|\S {2,}\S|\t|__|\.{4}|^[^\S\n]*[-=]{3,}",
    re.M,
)
# Code, markup, formulas and data: brackets and operators that prose does not have, calls, values without
# spaces.
_CODE = re.compile(
    r"[{}=<\\|`$]|;\s*$|\S>|\w\(|\w\[|\w::?\w|[^\W\d],[^\W\d]|[\"']\s*:|^[^\S\n]*(?:#!|//|/\*)", re.M
)
_LINE = re.compile(r"[^\n]+")
_VERSE_LINES = 3
_VERSE_CHARACTERS = 64
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)*_]*\s*$")


class Repetition:
    """`add` gets the tokens of one answer in order, with their texts.

    `question`: the message that is answered. `patient`: only the second rule holds, as for an answer that a
    person continued.
    """

    def __init__(self, question: str = "", *, patient: bool = False) -> None:
        self._patient = patient or _REQUESTS.search(question) is not None
        self._text = ""
        self._read = 0  # words before this offset are in `_starts`
        self._starts: list[int] = []  # of each word in the text
        self._ends: list[int] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        # By period in words: the number of consecutive words equal to the word one period before.
        self._same_words: dict[int, int] = {}
        self._ids: list[int] = []
        self._offsets: list[int] = []  # where each token's text begins
        # By period in tokens, likewise.
        self._same_ids = [0] * (LONGEST_PERIOD + 1)
        self.begins: int | None = None

    def add(self, token: int, text: str) -> bool:
        """Whether the answer repeats itself after this token.

        `begins` is then the character of the answer at which its first repetition begins.
        """
        self._offsets.append(len(self._text))
        self._text += text
        if self._ends_in_cycle(token):
            return True
        return not self._patient and bool(text) and self._reads_same_words()

    def _reads_same_words(self) -> bool:
        """Reads the words that are complete: the first rule."""
        for word in _WORD.finditer(self._text, self._read):
            if word.end() == len(self._text) and not re.match(f"[{_IDEOGRAPHS}]", word[0]):
                break  # it may go on in the next token
            self._read = word.end()
            number = len(self._starts)
            self._starts.append(word.start())
            self._ends.append(word.end())
            places = self._places[word[0].casefold()]
            if places and number - places[0] > PROSE_WORDS:
                del places[
                    : next((i for i, at in enumerate(places) if number - at <= PROSE_WORDS), len(places))
                ]
            self._same_words = {number - at: self._same_words.get(number - at, 0) + 1 for at in places}
            places.append(number)
            for period in sorted(self._same_words):
                same = self._same_words[period]
                if same + period < max(PROSE_TIMES * period, PROSE_TIMES * LEAST_WORDS):
                    continue
                if self._is_prose(period, same):
                    self.begins = self._starts[number + 1 - same]
                    return True
                break  # a multiple of this period
        else:
            self._read = len(self._text)
        return False

    def _is_prose(self, period: int, same: int) -> bool:
        """Whether the last `period` words and the `same` words before are prose."""
        first = len(self._starts) - same - period
        once = self._text[self._starts[first] : self._starts[first + period]]
        if period < LEAST_WORDS and not (period >= _SHORTEST and _SENTENCE_END.search(once)):
            return False
        if 2 * sum(any(map(str.isalpha, word)) for word in _WORD.findall(once)) < period:
            return False
        line_start = self._text.rfind("\n", 0, self._starts[first]) + 1
        if len(_FENCE.findall(self._text[:line_start])) % 2:
            return False
        span = re.sub(r"^[^\S\n]*>+ ?", "", self._text[line_start : self._ends[-1]], flags=re.M)
        return not (_LAID_OUT.search(span) or _CODE.search(span) or _is_verse(span))

    def _ends_in_cycle(self, token: int) -> bool:
        """The second rule. One comparison per period."""
        ids, same = self._ids, self._same_ids
        found = 0
        for period in range(1, min(LONGEST_PERIOD, len(ids)) + 1):
            if ids[-period] == token:
                same[period] += 1
                if not found and same[period] + period >= max(LEAST_TOKENS, LEAST_TIMES * period):
                    found = period
            else:
                same[period] = 0
        ids.append(token)
        if found:
            self.begins = self._offsets[len(ids) - same[found]]
        return bool(found)


_GRAM = 8


def repeated_share(items: Sequence[object]) -> float:
    """The share of items that repeat an earlier one which the same eight items preceded."""
    seen: set[tuple[object, ...]] = set()
    repeated = 0
    for end in range(_GRAM, len(items)):
        gram = tuple(items[end - _GRAM : end + 1])
        repeated += gram in seen
        seen.add(gram)
    return repeated / len(items) if items else 0.0


def _is_verse(text: str) -> bool:
    """Whether `text` has short lines directly below each other, most of which do not end a sentence."""
    lines = [line.strip() for line in _LINE.findall(text)]
    if len(lines) < _VERSE_LINES or max(map(len, lines)) > _VERSE_CHARACTERS:
        return False
    return 2 * sum(_SENTENCE_END.search(line) is not None for line in lines) < len(lines)
