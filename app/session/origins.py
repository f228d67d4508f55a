"""Origins of a chat's answers: which of their words and figures are in the model's input. Pure.

Sources are the attached documents, messages of more than `PASTED_CHARACTERS` characters and the results of
tools; earlier answers, thoughts, marks and typed edits are neither traced nor sources. A chat's sources are
numbered over all its turns: those of a turn follow those of earlier ones, so numbers stay as the chat grows.

`ChatOrigins` follows the open chat in slices: `follow` compares it with the traced turns, `step` continues
for some milliseconds. Nothing is stored; a chat that is opened is traced again.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from app.session import strings
from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.chats.parts import PartSplitter
from app.session.tools.calls import CallRecord
from core.answer_format import AnswerFormat
from core.events import TYPED, ReadingMap, Token
from core.origins import PASTED_CHARACTERS, Fact, Origins, Place, Run, Source, Spans, spans_read

if TYPE_CHECKING:  # `load_tracer`
    from core.origins import Index, Tracer

# A slice of an answer is traced at once; it takes about a millisecond.
_SLICE_CHARACTERS = 400
_MOST_LISTED = 40  # facts in a note


def load_tracer() -> None:
    """Import what finds origins. The first time it takes a tenth of a second; any thread."""
    from core.origins import Index, Tracer  # noqa: F401


class ChatSource(Struct, frozen=True):
    """A source of a chat. `document` is its number among the attachments of all messages, as in
    `core.events.Passage.source`; −1 for a message or the result of a tool, which `turn_id` names. `pages`:
    see `Attachment`.
    """

    name: str
    text: str
    turn_id: str
    document: int = -1
    pages: tuple[int, ...] = ()

    def named(self, place: Place) -> str:
        """The name with the page or pages of `place`, where they are known."""
        if not self.pages:
            return self.name
        first, last = (max(1, bisect_right(self.pages, at)) for at in (place.start, place.end - 1))
        return strings.on_pages(self.name, first, last)

    def words(self, place: Place) -> str:
        """The characters of `place` on one line."""
        return " ".join(self.text[place.start : place.end].split())


class AnswerOrigins(Struct, frozen=True):
    """Origins of one answer; offsets are into its whole source. `sources` are those that it could copy.

    `complete`: all of the answer is traced, and it is over.
    """

    sources: tuple[ChatSource, ...] = ()
    origins: Origins = Origins()
    complete: bool = False

    @property
    def runs(self) -> tuple[Run, ...]:
        return self.origins.runs

    @property
    def unfounded(self) -> tuple[Fact, ...]:
        """The facts that no source has."""
        return tuple(fact for fact in self.origins.facts if fact.state == "nowhere")

    @property
    def skipped(self) -> tuple[Fact, ...]:
        """The facts that only unread passages have."""
        return tuple(fact for fact in self.origins.facts if fact.state == "skipped")


def distinct(facts: Sequence[Fact], source: str) -> list[tuple[Fact, str]]:
    """The facts of an answer with this source, each once, with their texts on one line."""
    found: dict[tuple[str, str], tuple[Fact, str]] = {}
    for fact in facts:
        text = " ".join(source[fact.start : fact.end].split())
        found.setdefault((fact.state, fact.key or text), (fact, text))
    return list(found.values())


def sources_of(turns: Sequence[Turn]) -> tuple[ChatSource, ...]:
    """The sources of the answer of the last of `turns`."""
    found: list[ChatSource] = []
    documents = 0
    for turn in turns:
        for attachment in turn.user.attachments:
            found.append(ChatSource(attachment.name, attachment.text, turn.id, documents, attachment.pages))
            documents += 1
        if len(turn.user.content) > PASTED_CHARACTERS:
            found.append(ChatSource(strings.PASTED, turn.user.content, turn.id))
        for call in turn.answer.calls:
            number = documents if call.document else -1
            documents += call.document is not None
            if call.state == "done":
                found.append(ChatSource(strings.OF_TOOL.format(name=call.tool), call.result, turn.id, number))
    return tuple(found)


def question_of(turns: Sequence[Turn]) -> str:
    """The user's messages in `turns`."""
    return "\n\n".join(turn.user.content for turn in turns)


def read_spans(sources: Sequence[ChatSource], reading: ReadingMap | None) -> list[Spans | None]:
    """For each source the characters that were read; None: all of it."""
    passages = () if reading is None else reading.passages
    return [
        spans_read(passages, source.document, len(source.text)) if source.document >= 0 else None
        for source in sources
    ]


class _Traced:
    """The answer of one turn while it is traced."""

    def __init__(self, sources: tuple[ChatSource, ...], question: str) -> None:
        self.sources = sources
        self.question = question if sources else ""
        self.earlier: tuple[Origins, ...] = ()
        self.answer = Answer()
        self._calls: tuple[CallRecord, ...] | None = None
        self.reading: ReadingMap | None = None
        self.result = AnswerOrigins(sources)
        self._tracer: Tracer | None = None
        self._fed = 0  # tokens in `_ranges`
        self._source = ""
        self._typed: list[tuple[int, int]] = []
        self._format: AnswerFormat | None = None
        self._splitter = PartSplitter()
        self._first = 0  # source offset of the generation
        self._pending: list[tuple[str, bool]] = []  # text, and whether it is left out
        self._at = 0  # end of the parts from the splitter
        self._ended = False

    def take(self, answer: Answer) -> bool:
        """Take the current answer. Returns False if it does not continue the one taken before."""
        if self._calls is not None and answer.calls != self._calls:  # their results are sources
            return False
        before, self._calls = self.answer, answer.calls
        grows = answer.tokens[: self._fed] == before.tokens[: self._fed] if answer is not before else True
        if self._tracer is not None and (not grows or answer.reading is not self.reading):
            return False
        self.answer = answer
        return not (before.over and not answer.over and self._ended)

    def begin(self, tracer: Tracer, reading: ReadingMap | None) -> None:
        self._tracer, self.reading = tracer, reading
        format = self.answer.tokens[0].format if self.answer.tokens else None
        if format is None and self.answer.finished is not None:
            format = self.answer.finished.effective.format
        self._format = format
        self._splitter = PartSplitter(format, self.answer.tools)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts to index before the answer is traced."""
        return (*(source.text for source in self.sources), self.question)

    @property
    def is_begun(self) -> bool:
        return self._tracer is not None

    @property
    def is_behind(self) -> bool:
        """Whether something of the answer is not traced."""
        return bool(self._pending) or self._fed < len(self.answer.tokens) or self._ended < self.answer.over

    def step(self, until: Callable[[], bool]) -> bool:
        """Trace the next slices until `until`. Returns False if the splitter began again."""
        assert self._tracer is not None
        behind = self._fed < len(self.answer.tokens) or self._ended < self.answer.over
        if behind and not self._split():
            return False
        while self._pending:
            text, left_out = self._pending.pop(0)
            if len(text) > _SLICE_CHARACTERS and not left_out:
                self._pending.insert(0, (text[_SLICE_CHARACTERS:], left_out))
                text = text[:_SLICE_CHARACTERS]
            self._tracer.extend(text, left_out=left_out)
            if until() and self._pending:
                return True
        self.result = AnswerOrigins(self.sources, self._tracer.origins, self._ended)
        return True

    def _split(self) -> bool:
        new: Sequence[Token] = self.answer.tokens[self._fed :]
        for token in new:
            start = len(self._source)
            self._source += token.text
            if token.id == TYPED and token.text:
                self._typed.append((start, len(self._source)))
            self._fed += 1
            if any(call.after == self._fed for call in self.answer.calls):  # a generation ends
                if not self._read(whole=True):
                    return False
                self._splitter = PartSplitter(self._format, self.answer.tools)
                self._first = len(self._source)
        self._ended = self.answer.over
        return self._read(whole=self._ended)

    def _read(self, *, whole: bool) -> bool:
        """Split the new part of the generation. Returns False if all of it was split again."""
        parts, again = self._splitter.read(self._source[self._first :], whole=whole)
        if again and self._at > self._first:
            return False
        for part in parts:
            self._pending += self._without_typed(part.text, part.kind != "text")
        return True

    def _without_typed(self, text: str, left_out: bool) -> Iterator[tuple[str, bool]]:
        begin, end = self._at, self._at + len(text)
        self._at = end
        if self.answer.status == "imported" or left_out or not self._typed:
            yield text, left_out
            return
        at = begin
        for start, stop in self._typed:
            low, high = max(start, at), min(stop, end)
            if low < high:
                yield from (
                    (text[a - begin : b - begin], out)
                    for a, b, out in ((at, low, False), (low, high, True))
                    if a < b
                )
                at = high
        if at < end:
            yield text[at - begin :], False


class ChatOrigins:
    """Origins of a chat's answers, in slices."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._indexes: dict[str, Index] = {}  # by text: the same document is indexed once
        self._traced: dict[str, _Traced] = {}
        self._turns: tuple[Turn, ...] = ()

    def follow(self, chat: Conversation) -> None:
        """Take the chat as it is now; origins of unchanged turns are kept."""
        kept: dict[str, _Traced] = {}
        unchanged = True
        for number, turn in enumerate(chat.turns):
            traced = self._traced.get(turn.id)
            before = self._turns[number] if number < len(self._turns) else None
            unchanged = unchanged and before is not None and before.id == turn.id and before.user == turn.user
            if traced is not None and unchanged and traced.take(turn.answer):
                kept[turn.id] = traced
                continue
            unchanged = False
            turns = chat.turns[: number + 1]
            traced = _Traced(sources_of(turns), question_of(turns))
            traced.take(turn.answer)
            kept[turn.id] = traced
        self._traced, self._turns = kept, chat.turns
        texts = {text for traced in kept.values() for text in traced.texts}
        self._indexes = {text: index for text, index in self._indexes.items() if text in texts}

    @property
    def has_sources(self) -> bool:
        """Whether the chat has anything that an answer can be copied from."""
        return any(traced.sources for traced in self._traced.values())

    def of(self, turn_id: str) -> AnswerOrigins:
        """The origins of an answer that are known now."""
        traced = self._traced.get(turn_id)
        return traced.result if traced else AnswerOrigins()

    def step(self, seconds: float) -> tuple[list[str], bool]:
        """Continue for about `seconds`. Returns the turns whose origins are new, and whether all is done."""
        end_s = self._now() + seconds
        changed: list[str] = []
        earlier: list[Origins] = []
        for number, turn in enumerate(self._turns):
            traced = self._traced[turn.id]
            if traced.sources and (traced.is_behind or not traced.is_begun) and turn.answer.tokens:
                if not self._build(() if traced.is_begun else traced.texts, end_s):
                    return changed, False
                if not traced.is_begun:
                    traced.earlier = tuple(earlier)
                    traced.begin(self._tracer(number, traced), turn.answer.reading)
                if not traced.step(lambda: self._now() >= end_s):
                    again = _Traced(traced.sources, traced.question)
                    again.take(turn.answer)
                    self._traced[turn.id] = again
                    return changed, False
                if traced.is_behind:
                    return changed, False
                changed.append(turn.id)
                if self._now() >= end_s and number + 1 < len(self._turns):
                    return changed, False
            earlier.append(traced.result.origins)
        return changed, True

    def _build(self, texts: Sequence[str], end_s: float) -> bool:
        """Build the indexes of `texts` until then. Returns whether all are complete."""
        from core.origins import Index

        for text in texts:
            index = self._indexes.get(text) or self._indexes.setdefault(text, Index(text))
            if not index.build(max(0.0, end_s - self._now())):
                return False
        return True

    def _tracer(self, number: int, traced: _Traced) -> Tracer:
        from core.origins import Tracer

        turns = self._turns[: number + 1]
        return Tracer(
            [Source(source.name, source.text) for source in traced.sources],
            [self._indexes[source.text] for source in traced.sources],
            self._indexes[traced.question],
            earlier=traced.earlier,
            read=read_spans(traced.sources, turns[-1].answer.reading),
        )


# A note cannot be in a fenced block, nor inside code in a line.
_CODE = re.compile(r"^(`{3,}+|~{3,}+).*?(?:^\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def run_note(origins: AnswerOrigins, run: Run) -> str:
    """The document and passage of copied words."""
    copied = origins.sources[run.place.source]
    return f"{copied.named(run.place)}: “{copied.words(run.place)}”"


def notes_of(origins: AnswerOrigins) -> list[tuple[int, str]]:
    """The footnotes of an answer: the end of the words that each refers to, and its text."""
    notes = [(run.end, run_note(origins, run)) for run in origins.runs]
    notes += [(fact.end, f"{strings.NOT_IN_DOCUMENTS}.") for fact in origins.unfounded]
    return sorted(notes, key=lambda note: note[0])


def note_texts(origins: AnswerOrigins, source: str) -> list[str]:
    """The notes of an answer for a list below it, each once; the last one lists the facts in no source."""
    notes = dict.fromkeys(run_note(origins, run) for run in origins.runs)
    if facts := [text for _, text in distinct(origins.unfounded, source)]:
        listed = [*facts[:_MOST_LISTED], *["…"] * (len(facts) > _MOST_LISTED)]
        notes[f"{strings.NOT_IN_DOCUMENTS}: {', '.join(listed)}"] = None
    return list(notes)


def with_sources(source: str, ranges: Sequence[tuple[int, int]], origins: AnswerOrigins) -> str:
    """The `ranges` of an answer's source with Markdown footnotes. Equal notes have one number."""
    numbers: dict[str, int] = {}
    marks: dict[int, str] = {}
    codes = [(match.start(), match.end(), match[1] is not None) for match in _CODE.finditer(source)]
    for end, text in notes_of(origins):
        if not any(first < end <= last for first, last in ranges):
            continue
        inside = next(((last, fenced) for first, last, fenced in codes if first < end < last), None)
        if inside and inside[1]:
            continue
        at = inside[0] if inside else end
        number = numbers.setdefault(text, len(numbers) + 1)
        marks[at] = marks.get(at, "") + f"[^{number}]"
    parts: list[str] = []
    for first, last in ranges:
        at = first
        for place in sorted(place for place in marks if first < place <= last):
            parts += [source[at:place], marks[place]]
            at = place
        parts.append(source[at:last])
    text = "".join(parts).strip("\n")
    notes = "\n".join(f"[^{number}]: {note}" for note, number in numbers.items())
    return f"{text}\n\n{notes}\n" if notes else text


def origins_of_chat(chat: Conversation) -> dict[str, AnswerOrigins]:
    """The origins of all answers of a chat, by turn. Any thread."""
    found = ChatOrigins()
    found.follow(chat)
    while not found.step(1.0)[1]:
        pass
    return {turn.id: found.of(turn.id) for turn in chat.turns}
