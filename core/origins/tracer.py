"""Origins of a growing answer: each complete part is traced once, the open part at each call of `origins`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.origins.facts import FactFinder
from core.origins.index import Index
from core.origins.parts import Part, Splitter
from core.origins.runs import Match, Matcher
from core.origins.types import Fact, Origins, Place, Run, Source, Spans
from core.origins.words import Word, fixed_end, words


class Tracer:
    """Traces an answer while it is written. The arguments are those of `trace`."""

    def __init__(
        self,
        sources: Sequence[Source],
        indexes: Sequence[Index],
        question: str | Index = "",
        *,
        earlier: Sequence[Origins] = (),
        read: Sequence[Spans | None] | None = None,
    ) -> None:
        if isinstance(question, str):
            question = Index(question)
            question.build()
        if len(sources) != len(indexes):
            raise ValueError(f"{len(sources)} sources have {len(indexes)} indexes. Each needs its own.")
        if not all(index.complete for index in (*indexes, question)):
            raise RuntimeError("An index is not complete. Call build() until it returns True.")
        self._indexes = indexes
        self._read = [None] * len(sources) if read is None else list(read)
        self._splitter = Splitter()
        self._matcher = Matcher(indexes)
        # The open part's words that further text cannot change, which the matcher has, and their end.
        self._words: list[Word] = []
        self._words_end = 0
        self._finder = FactFinder(indexes, question, earlier, self._read)
        self._facts: list[Fact] = []
        self._runs: list[Run] = []  # of the matches that are final
        self._open: dict[Match, Run] = {}

    def extend(self, text: str, *, left_out: bool = False) -> None:
        """Add the next characters of the answer. `left_out`: they have no origins, as the user typed them."""
        if not self._indexes:
            return
        if left_out:
            self._close()
            self._splitter.start += len(text)
            return
        for part in self._splitter.feed(text):
            self._facts += self._traced(part)

    def _close(self) -> None:
        """Complete the open part: later text does not continue it."""
        for part in self._splitter.close():
            self._facts += self._traced(part)
        self._matcher.interrupt()

    def _traced(self, part: Part) -> list[Fact]:
        facts = self._look(part)
        self._words, self._words_end = [], 0
        return facts

    def _look(self, part: Part) -> list[Fact]:
        if part.kind == "rule":
            return []
        self._match(part, [*self._words, *words(part.text, self._words_end)])
        return self._finder.add(part, self._words_end)

    def _match(self, part: Part, known: list[Word]) -> None:
        code = part.kind == "code"
        self._matcher.add(known, part.start, part.units, code=code, known=len(self._words))

    def _advance(self, part: Part) -> None:
        """Match the words of the open part that further text cannot change."""
        end = fixed_end(part.text, self._words_end, part.fixed_most)
        if end > self._words_end:
            known = [*self._words, *words(part.text, self._words_end, end)]
            self._match(part, known)
            self._finder.hear(part.text[self._words_end : end])
            self._words, self._words_end = known, end

    @property
    def origins(self) -> Origins:
        """Origins of the text added up to now, equal to those of a complete answer with this text."""
        if not self._indexes:
            return Origins()
        part = self._splitter.open()
        if part is not None:
            self._advance(part)
        settled = self._matcher.settled
        for match in self._matcher.matches[len(self._runs) : settled]:
            self._runs.append(self._open.get(match) or self._run(match))
        matcher, finder = self._matcher.save(), self._finder.save()
        facts = list(self._facts)
        if part is not None:
            facts += self._look(part)
        self._matcher.interrupt()
        self._open = {
            match: self._open.get(match) or self._run(match) for match in self._matcher.matches[settled:]
        }
        self._matcher.restore(matcher)
        self._finder.restore(finder)
        return Origins((*self._runs, *self._open.values()), tuple(facts))

    def _run(self, match: Match) -> Run:
        found: list[tuple[int, Place]] = []
        first = match.end - (match.last - match.first + 1)
        for source, index in enumerate(self._indexes):
            sequence = self._matcher.ids[source][match.first : match.last + 1]
            begins = set(index.places(sequence, first))
            if source == match.source:
                begins.add(first)
            for begin in begins:
                start, end = index.characters(begin, begin + match.last - match.first)
                place = Place(source, start, end)
                found.append((distance(self._read[source], start, end), place))
        found.sort(key=lambda each: (each[0], each[1].source, each[1].start))
        place, others = found[0][1], [each for _, each in found[1:]]
        others.sort(key=lambda each: (each.source, each.start))
        start, end = self._matcher.starts[match.first], self._matcher.ends[match.last]
        return Run(start, end, place, tuple(others))


def distance(read: Spans | None, start: int, end: int) -> int:
    """Characters between a place and the nearest part that was read; 0 inside it. None: all was read."""
    if read is None:
        return 0
    return min((max(first - start, end - last, 0) for first, last in read), default=1 << 60)


def trace(
    answer: str,
    sources: Sequence[Source],
    indexes: Sequence[Index],
    question: str | Index = "",
    *,
    earlier: Sequence[Origins] = (),
    read: Sequence[Spans | None] | None = None,
    left_out: Iterable[tuple[int, int]] = (),
) -> Origins:
    """Origins of `answer`, Markdown, in `sources`; none without sources.

    - `indexes`: a complete one for each source, in the same order.
    - `question`: what the user wrote, all messages of the chat up to this answer, or its complete index.
    - `earlier`: origins of the chat's earlier answers, oldest first. Their facts keep their state.
    - `read`: for each source the character ranges that were read, ascending; None: all of it.
    - `left_out`: ranges of the answer without origins, ascending: typed edits.

    Raises ValueError if sources and indexes differ in number, RuntimeError if an index is not complete.
    """
    tracer = Tracer(sources, indexes, question, earlier=earlier, read=read)
    at = 0
    for start, end in left_out:
        tracer.extend(answer[at:start])
        tracer.extend(answer[start:end], left_out=True)
        at = end
    tracer.extend(answer[at:])
    return tracer.origins
