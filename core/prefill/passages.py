"""Passages: a text cut where a reader would cut it, at paragraph, line, sentence and clause ends.

A passage has about `TARGET` tokens, at least `LEAST` and at most `MOST` (a shorter text is one passage). The
cuts minimise the sum of a cost for each boundary, by what ends there, and of each passage's squared relative
deviation from the target; dynamic programming finds the minimum. Rows of tables and logs are cut only if a
row alone exceeds the limit. Lines of prose that was wrapped at a fixed width don't count as ends.

Tokens are estimated from the characters, so that the cuts depend on nothing but the text: vectors of a
document's passages are computed once and serve every model (`core.encoder`). With the starter's tokenizer
English, code and tables have 26 to 38 tokens a passage on average; German, of which it learned little, 35 to
42. Pure; any thread.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array = np.ndarray[Any, Any]

# In estimated tokens.
TARGET, LEAST, MOST = 32, 12, 56

# Costs of boundaries. No cut within a table's row that fits into one passage is worth its cost.
_BLANK_LINE = 0.0
_LINE = 0.1
_SENTENCE = 0.15
_CLAUSE = {";": 0.5, ":": 0.5, "；": 0.5, "：": 0.5, "؛": 0.5, "—": 0.6, "–": 0.6}
_OTHER_CLAUSE = 0.8
_SPACE = 1.5
_ANYWHERE = 3.0
_IN_ROW = 10.0
# Added to a line's cost for each column of indentation, so that blocks of code stay together, and where the
# next line closes a bracket.
_INDENT, _MOST_INDENT = 0.01, 16
_CLOSES = 0.2

# Classes of characters.
_SPACES, _LINE_ENDS, _LATIN, _DIGIT, _OTHER_LETTER, _IDEOGRAPH, _MARK = range(7)
# Most characters of one estimated token, by class. Tokenizers have fewer words of languages in which more
# than this share of the letters have accents.
_LATIN_CHARS, _ACCENTED_CHARS, _OTHER_CHARS, _MARK_CHARS = 7, 3, 2, 4
_ACCENTED_SHARE = 0.01

_CODE = [ord(each) for each in "={};_[]<>"]
# This many lines with the same number of commas are a table, even if they look like wrapped prose.
_TABLE_LINES = 4
# A paragraph of lines like these was wrapped: its longest line in characters, the length of most of its lines
# as a share of that, and how many of them begin in lower case.
_WRAPPED_CHARS, _WRAPPED_SHARE, _WRAPPED_LOWER = 45, 0.7, 0.25

_ENDS = re.compile(r"(?<![.!?…؟۔।])([.!?…؟۔।]+)[\"'”’»“)\]*_]*\s+")
_IDEOGRAPHIC_ENDS = re.compile(r"[。！？．…]+[」』”’）】》]*")
_CLAUSES = re.compile(r"([,;:،؛]|\s[—–-])[\"'”’»)\]]*\s+|[—]|([，、；：])")
# Text before a full stop that does not end a sentence: an initial, a short number (an ordinal, a section), an
# abbreviation.
_NO_END = re.compile(
    r"(?:(?:^|[^\w])(?:[^\W\d_]|\d{1,2}|[§#]\s*[\d.]+"
    r"|Drs?|Prof|Mrs?|Ms|Mx|St|Sr|Jr|Hr|Fr|Rev|Gen|Col|Capt|Lt|Sgt|Hon|Gov|Sen|Rep"
    r"|etc|vs|cf|viz|al|approx|ca|bzw|usw|vgl|evtl|ggf|inkl|exkl|sog|bspw|resp|max|min|Mio|Mrd|Tsd|Std|Str"
    r"|No|Nos|Nr|Art|Abs|Abb|Kap|Bd|Aufl|Hrsg|Tab|Fig|Figs|Eq|Eqs|Sec|Ch|Vol|pp|ed|eds|Inc|Ltd|Corp|Co|dept|Dept"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Okt|Nov|Dec|Dez"
    r"|Mme|Mlle|MM|av|env|chap|art|Sra|Srta|Dra|Dña|Ud|Uds|pág|núm|ej|Avv|Ing|Dott|Sig|pag|ecc|es"
    r"|ул|стр|рис|гл|тыс|млн|млрд|др|пр)|\.[^\W\d_]+)$"
)
_LOOK_BACK = 12


def cut(text: str) -> Array:
    """Character ranges (int32 [n, 2], end-exclusive, ascending) of the passages; they cover `text`.

    White space at a boundary belongs to the passage before it, except for a line's indentation.
    """
    if not text:
        return np.empty((0, 2), np.int32)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = _classes()[np.minimum(codes, len(_classes()) - 1)]
    units = _units(codes, kinds)
    begins = np.flatnonzero(units)
    if len(begins) < 2 * LEAST:
        return np.array([[0, len(text)]], np.int32)
    costs = _costs(text, codes, kinds, np.cumsum(units))[begins]
    firsts = begins[_best(costs)]
    firsts[0] = 0
    return np.stack([firsts, np.append(firsts[1:], len(text))], axis=1).astype(np.int32)


@cache
def _classes() -> Array:
    """uint8: the class of each character of the basic plane; the last one is that of all others."""
    kinds = np.full(1 << 16, _MARK, np.uint8)
    for code in range(len(kinds)):
        letter = chr(code)
        if letter in "\n\x0c\u2028\u2029":
            kinds[code] = _LINE_ENDS
        elif letter.isspace():
            kinds[code] = _SPACES
        elif letter.isdecimal():
            kinds[code] = _DIGIT
        elif letter.isalnum():
            kinds[code] = _LATIN if code < 0x250 else _OTHER_LETTER
    for first, last in ((0x2E80, 0x2FFF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x3400, 0x9FFF)):
        kinds[first : last + 1] = _IDEOGRAPH
    kinds[0xF900:0xFB00] = _IDEOGRAPH
    kinds[-1] = _IDEOGRAPH
    kinds[ord("_")] = _LATIN
    return kinds


def _units(codes: Array, kinds: Array) -> Array:
    """Where an estimated token begins: bool, one a character."""
    places = np.arange(len(codes))
    changes = np.append(True, kinds[1:] != kinds[:-1])
    # Runs of the same mark (rules, leaders) are few tokens.
    changes |= (kinds == _MARK) & np.append(True, codes[1:] != codes[:-1])
    offsets = places - np.maximum.accumulate(np.where(changes, places, 0))
    latin = kinds == _LATIN
    accented = np.count_nonzero(latin & (codes >= 0xC0)) > _ACCENTED_SHARE * np.count_nonzero(latin)
    latin_chars = _ACCENTED_CHARS if accented else _LATIN_CHARS
    every = np.array([1 << 30, 1 << 30, latin_chars, 1, _OTHER_CHARS, 1, _MARK_CHARS])[kinds]
    units = offsets % every == 0
    after_line = np.append(False, kinds[:-1] == _LINE_ENDS)
    # A single space belongs to the word after it.
    units[(kinds == _SPACES) & ~after_line] = False
    units |= after_line & (kinds != _LINE_ENDS)
    return np.asarray(units)


def _costs(text: str, codes: Array, kinds: Array, counts: Array) -> Array:
    """float64, one a character: the cost of a boundary before it. `counts`: tokens begun up to it."""
    costs = np.full(len(codes), _ANYWHERE)
    white = kinds <= _LINE_ENDS
    after_white = np.append(False, white[:-1])
    costs[after_white & ~white] = _SPACE
    for match in _CLAUSES.finditer(text):
        if match.end() < len(costs):
            costs[match.end()] = _CLAUSE.get(match[0].strip()[0], _OTHER_CLAUSE)
    ends = [match.end() for match in _ENDS.finditer(text) if _ends_sentence(text, match)]
    ends += [match.end() for match in _IDEOGRAPHIC_ENDS.finditer(text)]
    places = np.array(ends, np.int64)
    costs[places[places < len(costs)]] = _SENTENCE
    _add_lines(costs, codes, kinds, white, counts)
    return costs


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Whether the marks of `match` end a sentence."""
    following = text[match.end() : match.end() + 1]
    if following.islower():
        return False
    if match[1] != ".":
        return True
    start = match.start()
    return _NO_END.search(text[max(0, start - _LOOK_BACK) : start]) is None


def _add_lines(costs: Array, codes: Array, kinds: Array, white: Array, counts: Array) -> None:
    """Set the costs of cuts at line starts and within rows of tables."""
    breaks = np.flatnonzero(kinds == _LINE_ENDS)
    starts, ends = np.append(0, breaks + 1), np.append(breaks, len(codes))
    inked = np.flatnonzero(~white)
    following = np.searchsorted(inked, starts)
    words = np.append(inked, len(codes))[following]  # a line's first character that is not white space
    full = words < ends
    before_blank = np.append(True, ~full[:-1])[full]
    starts, ends, words = starts[full], ends[full], words[full]
    if not len(starts):
        return
    indents = np.minimum(words - starts, _MOST_INDENT)
    first = codes[words]
    line_costs = _LINE + _INDENT * indents + _CLOSES * np.isin(first, [ord(each) for each in ")]}"])
    line_costs[before_blank] = _BLANK_LINE
    rows, maybe_rows = _rows(starts, ends, words, codes, kinds, before_blank)
    wrapped, goes_on = _wrapped(starts, ends, words, codes, kinds, before_blank)
    rows |= maybe_rows & ~wrapped
    plain = ~goes_on | rows
    costs[starts[plain]] = line_costs[plain]
    # A wrapped line continues: a boundary at its start costs as much as within a line.
    for place, word in zip(starts[~plain], words[~plain]):
        costs[place] = costs[word]
    costs[words[words > starts]] = _ANYWHERE  # indentation stays with its line
    tokens = counts[ends - 1] - counts[starts] + 1
    for start, end in zip(starts[rows & (tokens <= MOST)], ends[rows & (tokens <= MOST)]):
        costs[start + 1 : end] = _IN_ROW


def _wrapped(
    starts: Array, ends: Array, words: Array, codes: Array, kinds: Array, begins: Array
) -> tuple[Array, Array]:
    """bool, one a line: whether its paragraph was wrapped, and whether it continues the line before it.

    `words`: a line's first character that is not white; `begins`: first lines of paragraphs.
    """
    marked = np.isin(codes[words], [ord("#"), ord(">")])  # comments and quoted mail
    letters = np.where(marked, np.minimum(words + 2, ends - 1), words)
    lower = (codes[letters] >= ord("a")) & (codes[letters] <= ord("z")) | (kinds[letters] == _OTHER_LETTER)
    lengths = ends - starts
    paragraphs = np.flatnonzero(begins)
    number = np.cumsum(begins) - 1
    longest = np.maximum.reduceat(lengths, paragraphs)
    lines = np.diff(np.append(paragraphs, len(starts)))
    last = np.append(begins[1:], True)
    long = (lengths >= _WRAPPED_SHARE * longest[number]) | last
    share_long = np.add.reduceat(long.astype(np.float64), paragraphs) / lines
    share_lower = np.add.reduceat((lower & ~begins).astype(np.float64), paragraphs) / np.maximum(1, lines - 1)
    found = (lines > 1) & (longest >= _WRAPPED_CHARS) & (share_long > 0.8) & (share_lower >= _WRAPPED_LOWER)
    wrapped = found[number]
    # If the paragraph is undecided, two of its lines may decide: the first ends with a word or comma, the
    # second begins below it in lower case, and neither looks like code.
    held = np.append(0, np.cumsum(np.isin(codes, _CODE)))
    prose = held[ends] == held[starts]
    closing = codes[np.maximum(ends - 1, 0)]
    open_end = np.isin(kinds[np.maximum(ends - 1, 0)], (_LATIN, _OTHER_LETTER)) | (closing == ord(","))
    before = prose & open_end & (lengths >= _WRAPPED_CHARS)
    pair = np.append(False, before[:-1]) & prose & lower & ~begins
    pair &= np.append(False, (words - starts)[1:] == (words - starts)[:-1])
    return wrapped, (wrapped & ~begins) | pair


def _rows(
    starts: Array, ends: Array, words: Array, codes: Array, kinds: Array, begins: Array
) -> tuple[Array, Array]:
    """bool, one a line each: whether it certainly is a row of a table or log, and whether it may be one."""
    paragraphs = np.flatnonzero(begins)
    lines = np.diff(np.append(paragraphs, len(starts)))
    surely, maybe = (np.zeros(len(starts), np.bool_) for _ in range(2))
    for mark, least in (("|", 2), ("\t", 1), (",", 2), (";", 2)):
        held = np.append(0, np.cumsum(codes == ord(mark)))
        cells = held[ends] - held[starts]
        rows = _like_neighbour(cells) & (cells >= least)
        maybe |= rows
        if mark in "|\t":
            surely |= rows
        else:
            even = np.maximum.reduceat(cells, paragraphs) == np.minimum.reduceat(cells, paragraphs)
            surely |= rows & np.repeat(even & (lines >= _TABLE_LINES), lines)
    stamped = (kinds[words] == _DIGIT) | (codes[starts] == ord("["))
    return surely, np.asarray(maybe | (stamped & _like_neighbour(stamped)))


def _like_neighbour(values: Array) -> Array:
    same = values[1:] == values[:-1]
    return np.asarray(np.append(same, False) | np.append(False, same))


def _best(costs: Array) -> Array:
    """The cheapest cuts: ascending indices of the tokens at which passages begin, 0 first.

    Passages have at least `LEAST` tokens, so that `LEAST` ends at a time depend only on earlier ones.
    """
    count = len(costs)
    sizes = np.arange(MOST, LEAST - 1, -1)
    deviation = (sizes / TARGET - 1.0) ** 2
    totals = np.full(MOST + count + 1, np.inf)  # of the cheapest cuts up to a token, behind `MOST` fillers
    totals[MOST] = 0.0
    taken = np.zeros(count + 1, np.int32)
    earlier = sliding_window_view(totals, len(sizes))
    costs = np.append(costs, 0.0)
    for start in range(LEAST, count + 1, LEAST):
        end = min(start + LEAST, count + 1)
        sums = earlier[start:end] + deviation
        best = sums.argmin(axis=1)
        taken[start:end] = sizes[best]
        totals[MOST + start : MOST + end] = sums[np.arange(end - start), best] + costs[start:end]
    firsts = []
    at = count
    while at > 0:
        at -= int(taken[at])
        firsts.append(at)
    return np.array(firsts[::-1], np.int64)
