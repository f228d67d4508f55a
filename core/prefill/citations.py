"""Finds what supports an answer: passages of attached documents, and a sentence for each of its sentences.

Only text that the model has read counts. Worker's main thread; no forward pass of the model.

*Sentences* (`search`): the document sentences that share most rare words with the sentence are candidates,
alone and with the sentence next to them. A candidate's score is the share of the words that it contains,
weighted by rarity, plus the cosine of both vectors. Where the sentence encoder is unavailable or does not
support the script, the share of the pairs of words replaces the cosine. A candidate does not support the
sentence without its numbers, if only one of them has a negation of their words, if it has another name in
place of one that no document has, or if a sentence with other numbers shares more of its words. Code, tables,
headings, questions and introductions that end in a colon are never cited. The search runs in idle time after
the answer, in steps of about 0.1 s.

*Passages* (`sources`) are those that match the answer best by words and runs of characters, with the measure
of `core.prefill.scorers.lexical` and the answer in place of the question. Neighbours are one source. An
answer that matches no passage clearly has none.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import AnswerFormat, AnswerSplitter
from core.encoder.store import Embedder
from core.errors import EncoderUnavailableError
from core.events import Citation, Passage
from core.models.loader import LoadedModel
from core.prefill.layout import Layout
from core.prefill.read import Positions
from core.prefill.scorers.lexical import Words, asked_by, clearness, matching, words_of
from core.settings.prefill import Prefill

Array = np.ndarray[Any, Any]

# Scripts that put no spaces between words: each character counts as a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_STEM = 6
# A sentence ends at its mark before white space, unless that is the full stop of an ordinal number, an
# initial or a title, and at the end of a paragraph, list item or table row. A wrapped line does not end it.
_END = re.compile(
    r"(?:[!?…؟۔।॥]|(?<!\s\w)(?<!\.\w)(?<!\s\d\d)(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bvs)(?<!\bMrs)(?<!\bProf)\.)+"
    r"[\"”’'»)\]*_`]*(?=\s)|;(?=\s)|[。！？；]+[”’」』）]*|\n[ \t]*(?=\n|[-*+#|>•]|\d{1,3}[.)]\s)"
)
# These do not end a sentence before a lower-case letter or a figure.
_ABBREVIATION = re.compile(
    r"\b(?:approx|etc|incl|excl|est|max|min|nos?|figs?|secs?|vols?|pp|cf|al|inc|ltd|co|dept"
    r"|ca|bzw|vgl|usw|inkl|gem|ggf|nr|abb|tab|abs|art|resp|env|núm|pág)\.$",
    re.I,
)
_LONGEST_ABBREVIATION = 8
# A longer sentence is cut at its line breaks: it is a log, a list or code.
_LONG_CHARACTERS = 400
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.M | re.S)
_MARKER = re.compile(r"(?:[-*+•>]|\d{1,3}[.)])\s+|\[[ xX]\]\s+")
_NUMBER = re.compile(
    r"(?:(?<![^\s(])[-−])?(?:\d{1,3}(?:[.,'’٬\u00a0\u202f ]\d{3})+(?!\d)|\d+)(?:[.,٫]\d+)?"
    r"|[〇零一二两兩三四五六七八九十百千万萬]{2,}|[二两兩三四五六七八九]"
)
_NUMBER_WORDS = {
    word: str(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen twenty",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn"
        " siebzehn achtzehn neunzehn zwanzig",
        "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    )
    for number, word in enumerate(words.split(), start=2)
} | {
    "twice": "2",
    "zweimal": "2",
    "thrice": "3",
    "dreimal": "3",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
}
# A negation denies the words after it, or in some languages those before it.
_NEGATION = re.compile(
    r"(?P<before>ない|なかった|ません|않|못하|없|아니)"
    r"|n['’]t\b|(?<!\w)(?:not|no|nor|never|none|nobody|nothing|without|cannot"
    r"|nicht|nie|niemals|ohne|kein\w*|niet|geen|nooit|zonder|inte|ikke|aldrig|aldri|ingen|utan|uten|uden"
    r"|pas|jamais|sans|aucun\w*|non|nunca|jamás|sin|ningun\w*|senza|mai|nessun\w*|não|nem|sem|nenhum\w*"
    r"|не|нет|ни|без|никогда|ні|δεν|χωρίς|değil|yok|tidak|bukan|tanpa|không|chưa"
    r"|لا|لم|لن|ليس\w*|غير|بدون|לא|אין|בלי|ללא|אינ\w*|नहीं|बिना)(?!\w)"
    r"|不(?!仅|僅|过|過|同)|没(?!收)|沒(?!收)|未|无|無|非(?!常)|ไม่",
    re.I,
)
_DENIED_WORDS, _DENIED_CHARACTERS = 2, 4
_DENIED_STEM = 4
_DENIED_WITHIN = 40
_PAUSE = re.compile(r"[.,;:!?。，；！？،؛]")
_LEAST_WORDS = 3
_CANDIDATES = 3
_MOST_JOINED = 2  # sentences of a document that support a sentence of the answer together
_MOST_SENTENCES = 300  # of an answer; bounds the time of its search
# Document sentences that are indexed, and texts that are embedded, in one step.
_INDEXED_SENTENCES, _EMBEDDED_TEXTS = 500, 8
# The least scores of a support, and the costs that are subtracted from them. `python -m tests.tuning
# citations` counts precision and recall with them.
_LEAST_SCORE = 1.05
_LEAST_SCORE_BY_WORDS = 1.3
_JOINED_COSTS = 0.15
_NEGATION_COSTS = 0.2  # of a candidate with a negation that the sentence does not have
_NAME_COSTS = 0.3  # of a candidate without a name that the sentence has
# Above this share of capitalised words inside sentences, as in German, they are not names.
_CAPITALISED_NOUNS = 0.15
# Candidates below this share of words, less their costs, are not compared by their vectors.
_LEAST_SHARED = 0.2


class Document(Struct, frozen=True):
    """An attachment: its text, and for each of its characters whether the model has read it (bool)."""

    text: str
    read: Array


class Candidate(Struct, frozen=True):
    """A possible support of an answer's sentence: characters `first` to `last` of document `source`.

    `words`, `pairs`: the shares of the sentence's words and pairs of words that it contains, weighted by
    rarity, 0 to 1. `costs` are subtracted from its score.
    """

    source: int
    first: int
    last: int
    words: float
    pairs: float
    costs: float


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """The character ranges of a text's sentences, end-exclusive, without white space around them."""
    begin = 0
    for end in [
        *(match.end() for match in _END.finditer(text) if not _is_abbreviation(text, match.end())),
        len(text),
    ]:
        yield from _trimmed(text, begin, end)
        begin = end


def _is_abbreviation(text: str, end: int) -> bool:
    """Whether the full stop before `end` belongs to an abbreviation inside a sentence."""
    after = text[end : end + 4].lstrip()[:1]
    return (after.islower() or after.isdecimal()) and bool(
        _ABBREVIATION.search(text[max(0, end - _LONGEST_ABBREVIATION) : end])
    )


def _trimmed(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[begin:end]
    if len(part) > _LONG_CHARACTERS and "\n" in part.strip():
        for line in re.finditer(r"[^\n]+", part):
            yield from _trimmed(text, begin + line.start(), begin + line.end())
        return
    begin += len(part) - len(part.lstrip())
    if begin < end:
        yield begin, begin + len(part.strip())


def answer_sentences(text: str, format: AnswerFormat) -> Iterator[tuple[int, int]]:
    """The ranges of the sentences of an answer that can be cited. `text` includes thoughts and calls."""
    splitter = AnswerSplitter(format)
    begin = 0
    for part in [*splitter.add(text), *splitter.end()]:
        end = begin + len(part.text)
        if part.kind == "text":
            masked = _FENCE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), part.text)
            for first, last in sentences(masked):
                sentence = masked[first:last]
                if not sentence.startswith(("#", "|")) and sentence.rstrip("*_` ")[-1:] not in (*":?：？؟",):
                    yield begin + first, begin + last
        begin = end


class _Word(Struct, frozen=True, gc=False):
    """A word's stem, and whether it begins with a capital letter."""

    stem: str
    capital: bool


def _words(text: str) -> list[_Word]:
    return [_word(match.group()) for match in _WORD.finditer(text)]


def _word(text: str) -> _Word:
    word = text.casefold()
    if word.isdecimal():
        return _Word(_figure(word), False)
    return _Word(_NUMBER_WORDS.get(word, word[:_STEM]), text[0].isupper())


def _figure(digits: str) -> str:
    """`digits` of any script as ASCII digits."""
    return digits if digits.isascii() else "".join(str(int(each)) for each in digits)


def _numbers(text: str) -> set[str]:
    """The numbers in figures and in words, in one notation: 1,250.50 is 1 250,5, and 1.5 is not 15."""
    found = {_number(match.group()) for match in _NUMBER.finditer(text)}
    return found | {
        _NUMBER_WORDS[word] for word in re.findall(r"[^\W\d_]+", text.casefold()) if word in _NUMBER_WORDS
    }


def _number(text: str) -> str:
    sign, text = ("-", text[1:]) if text[0] in "-−" else ("", text)
    if not text[0].isdecimal():
        return text
    groups = re.split(r"\D", text)
    has_groups = len(groups) > 1 and all(len(each) == 3 for each in groups[1:])
    whole, fraction = groups, ""
    if len(groups) > 1 and not has_groups:
        whole, fraction = groups[:-1], _figure(groups[-1]).rstrip("0")
    number = _figure("".join(whole)).lstrip("0") or "0"
    return sign + number + (f".{fraction}" if fraction else "")


def _denials(text: str) -> list[list[str]]:
    """The beginnings of the words that each negation of `text` denies."""
    found = []
    for match in _NEGATION.finditer(text):
        if match["before"]:
            part = _PAUSE.split(text[max(0, match.start() - _DENIED_WITHIN) : match.start()])[-1]
            words = [word.stem for word in _words(part)][::-1]
        else:
            part = _PAUSE.split(text[match.end() : match.end() + _DENIED_WITHIN])[0]
            words = [word.stem for word in _words(part)]
        characters = bool(words) and bool(re.match(rf"[{_UNSPACED}]", words[0]))
        most = _DENIED_CHARACTERS if characters else _DENIED_WORDS
        found.append([word[:_DENIED_STEM] for word in words[:most]])
    return found


def _contradicts(sentence: str, text: str) -> bool:
    """Whether only one of `sentence` and `text`, which has its words, denies them."""
    own, others = _denials(sentence), _denials(text)
    if own and not others:
        return True
    if len(others) != len(own) + 1:
        return False
    said = {word.stem[:_DENIED_STEM] for word in _words(sentence)}
    for words in others:
        shared = sum(word in said for word in words)
        if words and (2 * shared >= len(words) if len(words) > _DENIED_WORDS else shared == len(words)):
            return True
    return False


class Index:
    """The sentences of the documents, and in which of them each word occurs; empty before `build`."""

    def __init__(self, documents: Mapping[int, Document]) -> None:
        self.documents = documents
        self.ranges: list[tuple[int, int, int]] = []  # source, first and last character
        self.stems: list[list[str]] = []
        self._holding: dict[str, list[int]] = {}
        self._lower: set[str] = set()  # words that occur without a capital letter
        self._names = False

    def build(self) -> Iterator[None]:
        """Index the sentences; yields now and then."""
        capitals = inside = 0
        for source, document in self.documents.items():
            for number, (first, last) in enumerate(sentences(document.text)):
                if number % _INDEXED_SENTENCES == _INDEXED_SENTENCES - 1:
                    yield
                words = _words(document.text[first:last])
                if not words or 2 * int(document.read[first:last].sum()) < last - first:
                    continue
                stems = [word.stem for word in words]
                for stem in set(stems):
                    self._holding.setdefault(stem, []).append(len(self.ranges))
                self.ranges.append((source, first, last))
                self.stems.append(stems)
                self._lower.update(word.stem for word in words if not word.capital)
                capitals += sum(word.capital for word in words[1:])
                inside += len(words) - 1
        self._names = capitals <= _CAPITALISED_NOUNS * inside

    def names(self, words: Sequence[_Word]) -> set[str]:
        """The stems of a sentence's words that are names: the documents have them with a capital letter only.

        The first word is one only if it occurs there.
        """
        if not self._names:
            return set()
        return {
            word.stem
            for at, word in enumerate(words)
            if word.capital and word.stem not in self._lower and (at or word.stem in self._holding)
        }

    def rarity(self, stem: str) -> float:
        """How much a word counts, as in BM25; a word that no document contains counts most."""
        count, having = len(self.ranges), len(self._holding.get(stem, ()))
        return float(np.log(1 + (count - having + 0.5) / (having + 0.5)))

    def candidates(self, sentence: str) -> list[Candidate]:
        """The ranges of the documents that can support `sentence`."""
        body = _MARKER.sub("", sentence, count=1) if _MARKER.match(sentence) else sentence
        own = _words(body)
        stems, names = [word.stem for word in own], self.names(own)
        if len(stems) < _LEAST_WORDS or not self.ranges:
            return []
        weights = {stem: self.rarity(stem) for stem in dict.fromkeys(stems)}
        shared = np.zeros(len(self.ranges))
        for stem, weight in weights.items():
            shared[self._holding.get(stem, [])] += weight
        numbers, denies = _numbers(body), bool(_NEGATION.search(body))
        strange = {name for name in names if name not in self._holding}
        ranges = {
            (first, last)
            for at in np.argsort(-shared, kind="stable")[:_CANDIDATES].tolist()
            for first in range(max(0, at - _MOST_JOINED + 1), at + 1)
            for last in range(at, min(len(self.ranges), first + _MOST_JOINED))
            if shared[at] and self.ranges[first][0] == self.ranges[last][0]
        }
        plain = {stem for stem in weights if not stem.isdecimal()}

        def shared_words(first: int, last: int) -> float:
            held = {stem for each in self.stems[first : last + 1] for stem in each}
            return float(sum(weights[stem] for stem in plain & held))

        # "The red valve opens at 5 bar" is refuted by a sentence about it with another number, and not
        # supported by one about the blue valve.
        refuting = {
            at: shared_words(at, at)
            for at in sorted({at for each in ranges for at in each})
            if not numbers <= (own_numbers := _numbers(self._text(at, at))) and own_numbers - numbers
        }
        most = max(refuting.values(), default=0.0)
        found = []
        for first, last in sorted(ranges):
            text = self._text(first, last)
            if not numbers <= _numbers(text) or _contradicts(body, text):
                continue
            if shared_words(first, last) < most or most in (refuting.get(first), refuting.get(last)):
                continue
            # "Peter Moss" for "Ellen Moss": one name in place of another.
            if strange and self.names(_words(text)) - set(stems):
                continue
            held = [stem for each in self.stems[first : last + 1] for stem in each]
            costs = _JOINED_COSTS * (last - first)
            costs += _NEGATION_COSTS * (bool(_NEGATION.search(text)) and not denies)
            costs += _NAME_COSTS * (not names <= set(held))
            words, pairs = _shares(stems, weights, held)
            if words - costs >= _LEAST_SHARED:
                source, begin, _ = self.ranges[first]
                found.append(Candidate(source, begin, self.ranges[last][2], words, pairs, costs))
        return found

    def _text(self, first: int, last: int) -> str:
        source, begin, _ = self.ranges[first]
        return self.documents[source].text[begin : self.ranges[last][2]]


def _shares(stems: Sequence[str], weights: Mapping[str, float], held: Sequence[str]) -> tuple[float, float]:
    """The shares of the words `stems`, and of their pairs, that `held` contains."""
    inside = set(held)
    near = {(one, other) for at, one in enumerate(held) for other in held[at + 1 : at + 3]}
    words = sum(weight for stem, weight in weights.items() if stem in inside) / sum(weights.values())
    pairs = [(one, other, weights[one] + weights[other]) for one, other in pairwise(stems)]
    shared = sum(weight for one, other, weight in pairs if (one, other) in near)
    return words, shared / sum(weight for _, _, weight in pairs)


def read_documents(layout: Layout, seen: Positions, texts: Sequence[str]) -> dict[int, Document]:
    """The documents of a prompt by source number; `texts` are those of all attachments.

    `seen` (int32): positions that the model has read.
    """
    seen = seen[seen < len(layout.source)]  # the answer is in the cache as well
    seen = seen[layout.source[seen] >= 0]
    found = {}
    for source in np.unique(layout.source[seen]).tolist():
        text, own = texts[source], seen[layout.source[seen] == source]
        first, last = (np.minimum(each[own], len(text)) for each in (layout.first_char, layout.last_char))
        edges = np.bincount(first, minlength=len(text) + 1) - np.bincount(last, minlength=len(text) + 1)
        found[source] = Document(text, edges.cumsum()[:-1] > 0)
    return found


Search = Generator[None, None, tuple[Citation, ...]]


def search(
    answer: str,
    format: AnswerFormat,
    documents: Mapping[int, Document],
    embedder: Embedder | None,
    begun: int = 0,
) -> Search:
    """Returns the supports of the answer's sentences, in the answer's order; yields between steps.

    `documents`: by source number. The first `begun` characters of the answer are an earlier part: ends are
    counted from there.
    """
    ranges = [each for each in answer_sentences(answer, format) if each[1] > begun][:_MOST_SENTENCES]
    index = Index(documents)
    yield from index.build()
    found = []
    for begin, end in ranges:
        yield
        if some := index.candidates(answer[begin:end]):
            found.append((end - begun, answer[begin:end], some))
    texts = {text for _, sentence, some in found for text in (sentence, *(_text(documents, e) for e in some))}
    vectors = yield from _vectors(sorted(texts, key=len), embedder)
    cited = []
    for end, sentence, some in found:
        if not vectors or _is_unspaced(sentence):
            scores, least = [each.words + each.pairs - each.costs for each in some], _LEAST_SCORE_BY_WORDS
        else:
            own = vectors[sentence]
            near = [float(vectors[_text(documents, each)] @ own) for each in some]
            scores = [each.words + cosine - each.costs for each, cosine in zip(some, near)]
            least = _LEAST_SCORE
        best = int(np.argmax(scores))
        if scores[best] >= least:
            cited.append(Citation(end, some[best].source, some[best].first, some[best].last))
    return tuple(cited)


def _text(documents: Mapping[int, Document], candidate: Candidate) -> str:
    return documents[candidate.source].text[candidate.first : candidate.last]


def _is_unspaced(text: str) -> bool:
    """Whether most letters are of scripts that the sentence encoder does not support."""
    letters = [character for character in text if character.isalpha()]
    return 2 * sum(character > "\u024f" for character in letters) > len(letters)


def _vectors(texts: Sequence[str], embedder: Embedder | None) -> Generator[None, None, dict[str, Array]]:
    """Returns float32 [384] of unit length for each text; nothing without the sentence encoder."""
    vectors: dict[str, Array] = {}
    if embedder is None:
        return vectors
    for first in range(0, len(texts), _EMBEDDED_TEXTS):
        yield
        some = texts[first : first + _EMBEDDED_TEXTS]
        try:
            vectors.update(zip(some, embedder.texts(some)[0]))
        except EncoderUnavailableError:
            return {}
    return vectors


# ---- passages

_MOST_SOURCES = 3
# A statement may begin in one passage and end in the next.
_MOST_PASSAGES = 3
# Relative to the best score: the least of another source, and of a neighbour that belongs to one.
_LEAST = 0.5
_BELONGS = 0.7
# The least `clearness`. `python -m tests.tuning sources` counts quotations below it, and those of other texts
# above it.
_CLEAR = 7.0


def sources(
    loaded: LoadedModel,
    layout: Layout,
    words: Words,
    seen: Positions,
    answer: Sequence[int],
    settings: Prefill,
) -> tuple[Passage, ...]:
    """Sources, the best first. `layout`, `words`: the prompt's; `seen` (int32): positions that were read."""
    in_documents = layout.source >= 0
    if not in_documents.any() or not answer:
        return ()
    said = words_of(loaded.tokenizer.convert_ids_to_tokens(list(answer)))
    asked = asked_by(said, np.ones(len(answer), dtype=np.bool_))
    start, end = np.flatnonzero(in_documents)[[0, -1]].tolist()
    passages = layout.passages(start, end + 1, settings)
    passages = replace(passages, of=np.where(in_documents, passages.of, -1))
    if clearness(words, asked, passages) < _CLEAR:
        return ()
    was_seen = np.zeros(len(in_documents), dtype=np.bool_)
    was_seen[seen[seen < len(was_seen)]] = True  # the answer is in the cache as well
    held = np.add.reduceat((was_seen & in_documents)[: end + 1].astype(np.int32), passages.firsts)
    scores = matching(words, asked, passages) * (held > 0)
    best, found, taken = float(scores.max(initial=0.0)), list[Passage](), np.zeros(len(scores), np.bool_)
    for at in np.argsort(-scores, kind="stable").tolist():
        if len(found) == _MOST_SOURCES or scores[at] <= _LEAST * best:
            break
        if taken[at]:
            continue
        first, last = at, at
        while last - first + 1 < _MOST_PASSAGES:
            sides = [n for n in (first - 1, last + 1) if 0 <= n < len(scores) and not taken[n]]
            side = max(sides, key=lambda n: scores[n], default=at)
            if side == at or scores[side] < _BELONGS * scores[at]:
                break
            first, last = min(first, side), max(last, side)
        taken[max(0, first - 1) : last + 2] = True  # neighbours add nothing
        own = np.arange(passages.firsts[first], passages.firsts[last] + passages.lengths[last])
        own = own[in_documents[own]]
        most = np.bincount(layout.source[own]).argmax()  # one of fixed length can exceed a document's end
        found.append(_passage(layout, own[layout.source[own] == most], scores[at]))
    return tuple(found)


def _passage(layout: Layout, places: Positions, score: float) -> Passage:
    """The passage of the tokens at `places`, all in one document."""
    return Passage(
        *(int(places[0]), int(places[-1]) + 1, True, float(score), int(layout.source[places[0]])),
        *(int(layout.first_char[places].min()), int(layout.last_char[places].max())),
    )
